#![allow(clippy::all)]
use ebbtide_elastic::*;
fn main() {
    let path = std::env::args().nth(1).unwrap();
    let raw = std::fs::read(&path).unwrap();
    let trace = Trace::read(&raw).unwrap();
    let mut c = Cluster::default();
    if let Ok(w) = std::env::var("EXACT") { c.whole_seconds = w != "1"; }
    let seed: u64 = std::env::var("SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    let t0 = std::time::Instant::now();
    let f = compare::fixed(&trace, &c, seed, &mut Nobody).unwrap();
    println!("static mean {:.2} max {:.1} p50 {:.2} p90 {:.2} p99 {:.2} long {:.2} n {} {:.1?} load {:.4}", f.short.mean(), f.short.max(), f.short.quantile(0.5), f.short.quantile(0.9), f.short.quantile(0.99), f.long.mean(), f.short.count(), t0.elapsed(), f.mean_long_load);
    for r in [1.0, 2.0, 3.0] {
        let t0 = std::time::Instant::now();
        let p = Policy::new(80, r, 0.5).unwrap();
        let iv: u64 = std::env::var("IV").ok().and_then(|s| s.parse().ok()).unwrap_or(120_000_000);
        let p = p.release_interval(iv).unwrap();
        let e = compare::elastic(&trace, &c, Elastic::new(p), seed, &mut Nobody).unwrap();
        let g = Gain::of(&f, &e, &p);
        println!("r {r} gain {:.3} mean {:.2} max {:.1} p50 {:.2} p90 {:.2} p99 {:.2} long {:.2} up {:.1} norm {:.1} most {} lives {:.2} max {:.1} n {} above {:.3} {:.1?}", g.mean, e.short.mean(), e.short.max(), e.short.quantile(0.5), e.short.quantile(0.9), e.short.quantile(0.99), e.long.mean(), e.transients.mean_up, g.normalised, e.transients.most, e.transients.lives.mean()/3600.0, e.transients.lives.max()/3600.0, e.transients.launched, e.above_threshold, t0.elapsed());
    }
}
