//! The paper's four jobs on the types of Table VI, against its figures and an independent prototype.

#![allow(clippy::unwrap_used, clippy::expect_used)] // All of this file is tests; helpers too may fail loudly.

mod common;

use common::{JOBS, job, vectors};
use ebbtide_bag::simulate::{Outage, OutageEnd, Run, Scenario, simulate};
use ebbtide_bag::{
    Bag, Conduct, Effort, OnHibernation, Plan, best_share, plan, plan_on_demand,
    smallest_without_copies,
};

const HOUR: u64 = 3600;

/// All scenarios of the paper's figures for a plan.
struct Figures {
    none: Run,
    short: Run,
    with_migration: Run,
    immediate: Run,
    on_demand: Run,
}

fn figures(bag: &Bag, primary: &Plan, dear: &Plan, vm: usize, copies: bool) -> Figures {
    let run = |plan: &Plan, end: Option<OutageEnd>, on_hibernation: OnHibernation| {
        let outages = end.map(|end| Outage { vm, from: 2 * HOUR, end });
        let scenario = Scenario {
            outages: outages.into_iter().collect(),
            conduct: Conduct { on_hibernation, copies },
            ..Scenario::default()
        };
        simulate(bag, plan, &scenario).unwrap()
    };
    Figures {
        none: run(primary, None, OnHibernation::Wait),
        short: run(primary, Some(OutageEnd::Resumes(5 * HOUR)), OnHibernation::Wait),
        with_migration: run(primary, Some(OutageEnd::Resumes(1002 * HOUR)), OnHibernation::Wait),
        immediate: run(primary, Some(OutageEnd::Never), OnHibernation::Migrate),
        on_demand: run(dear, None, OnHibernation::Wait),
    }
}

#[test]
fn explore() {
    for name in JOBS {
        let bag = job(name);
        println!("{name} D {} smallest without copies {:?} critical {:?}", bag.rules().deadline, smallest_without_copies(&bag), ebbtide_bag::critical(&bag));
        for effort in [Effort::Greedy, Effort::usual(1)] {
            let p = plan(&bag, effort);
            let d = plan_on_demand(&bag, effort);
            println!(" {:?} price {:?} bound {} gap {:.3} makespan {:.2} latest {:?} counts {:?}", effort, p.price, p.bound, p.gap(), p.makespan(&bag) as f64/3600., p.latest_start(&bag).map(|l| l as f64/3600.), p.counts().iter().map(|(t,m,n)| format!("{} {} {n}", bag.types()[*t].name, m.as_str())).collect::<Vec<_>>());
            println!("   od {:?} gap {:.3} mk {:.2} ratio {:.3} {:?}", d.price.primary, d.gap(), d.makespan(&bag) as f64/3600., d.price.quiet() as f64/p.price.quiet() as f64,d.counts().iter().map(|(t,m,n)| format!("{} {} {n}", bag.types()[*t].name, m.as_str())).collect::<Vec<_>>());
            for copies in [true,false] {
            for vm in 0..p.vms.len().min(3) {
            let f = figures(&bag, &p, &d, vm, copies);
            for (n, r) in [("none", &f.none), ("short",&f.short), ("hwm",&f.with_migration), ("im",&f.immediate), ("od",&f.on_demand)] {
                print!("   {copies} vm{vm} {n}: {:.3}$ {:.2}h met {} b{} m{}", r.price as f64/1e6, r.makespan as f64/3600., r.met, r.backups, r.moved);
            }
            println!();
            }}
        }
        let s = best_share(&bag, Effort::usual(1)).unwrap();
        println!(" best share {} {:?} {:?}", s.share, s.plan.price, s.tried);
    }
    let _ = vectors();
}
