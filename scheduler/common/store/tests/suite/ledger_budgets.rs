//! Disruption budgets in the ledger.

use crate::databases::TestDb;
use crate::ledger::{one, row, uuid};
use ebbtide_model::{BudgetScope, DisruptionBudget, GroupId, Seconds};
use ebbtide_store::SchemaState;
use ebbtide_store::ledger::{BudgetTurn, Ledger, LedgerBudget, LedgerError, RowEnd, UpdateResult};
use serde_json::json;
use tokio::task::JoinSet;

fn project(id: &str) -> BudgetScope {
    BudgetScope::Project(id.to_owned())
}

fn budget(scope: BudgetScope, max_victims: u32) -> DisruptionBudget {
    DisruptionBudget {
        scope,
        max_victims,
        window: Seconds(600),
    }
}

async fn open(db: &TestDb) -> Ledger {
    Ledger::open(&db.config()).await.unwrap()
}

fn turns(budgets: &[LedgerBudget]) -> Vec<BudgetTurn> {
    let turn = |known: &LedgerBudget| BudgetTurn {
        scope: known.budget.scope.clone(),
        turn: known.turn,
    };
    budgets.iter().map(turn).collect()
}

async fn budgets_are_set_replaced_and_deleted_for_all_schedulers(db: TestDb) {
    let (first, second) = (open(&db).await, open(&db).await);
    assert!(!first.heads("scheduler1", 60_000).await.unwrap().has_budgets);
    let group = BudgetScope::Group(GroupId(uuid(7)));
    first.put_budget(&budget(project("p"), 2)).await.unwrap();
    second.put_budget(&budget(group.clone(), 0)).await.unwrap();
    let known = second.budgets().await.unwrap();
    let limits = known.iter().map(|known| known.budget.clone());
    let all = [budget(group.clone(), 0), budget(project("p"), 2)];
    assert_eq!(limits.collect::<Vec<_>>(), all);
    assert!(first.heads("scheduler1", 60_000).await.unwrap().has_budgets);

    second.put_budget(&budget(project("p"), 5)).await.unwrap();
    let changed = first.budgets().await.unwrap();
    assert_eq!(changed[1].budget, budget(project("p"), 5));
    assert!(changed[1].turn > known[1].turn);
    assert_eq!(changed[0], known[0]);

    assert!(first.delete_budget(&project("p")).await.unwrap());
    assert!(!second.delete_budget(&project("p")).await.unwrap());
    second.put_budget(&budget(project("p"), 5)).await.unwrap();
    let again = first.budgets().await.unwrap();
    assert_ne!(again[1].turn, changed[1].turn, "a new budget has new turns");

    for scope in [project("p"), group] {
        assert!(first.delete_budget(&scope).await.unwrap());
    }
    assert_eq!(
        first.heads("scheduler1", 60_000).await.unwrap(),
        Default::default()
    );
    let long = first
        .put_budget(&budget(project(&"x".repeat(300)), 1))
        .await;
    assert_eq!(long.unwrap_err().code(), "EB-STORE-010");
}

async fn a_row_that_a_budget_does_not_know_of_is_not_written(db: TestDb) {
    let ledger = open(&db).await;
    let owner = ledger.register("a").await.unwrap();
    for id in ["p", "q"] {
        ledger.put_budget(&budget(project(id), 1)).await.unwrap();
    }
    let counted = turns(&ledger.budgets().await.unwrap());
    let within = async |id, turns: &[BudgetTurn]| {
        let new = row(id, &owner, &[id]);
        ledger.insert_within(&new, turns).await
    };
    within(1, &counted[..1]).await.unwrap();
    // The turns of both, in another order: one is as it was counted.
    let both = [counted[1].clone(), counted[0].clone()];
    let moved = within(2, &both).await.unwrap_err();
    let scope = project("p");
    assert_eq!(
        (moved.code(), moved),
        ("EB-LEDGER-005", LedgerError::BudgetMoved { scope })
    );
    assert_eq!(ledger.row(uuid(2)).await.unwrap(), None);
    let leaving = ledger.victims_of_open_rows().await.unwrap();
    assert_eq!(leaving, [(uuid(1), uuid(1))], "its victims stay free");
    let now = turns(&ledger.budgets().await.unwrap());
    assert_eq!(now[1], counted[1], "the other turn is as it was");
    within(2, &now).await.unwrap();
    assert_eq!(one(&ledger, 2).await.version, 1);

    // A budget that is changed or deleted has to be counted again, too.
    let counted = turns(&ledger.budgets().await.unwrap());
    ledger.put_budget(&budget(project("q"), 9)).await.unwrap();
    assert!(within(3, &counted[1..]).await.is_err());
    ledger.delete_budget(&project("p")).await.unwrap();
    assert!(within(3, &counted[..1]).await.is_err());
    within(3, &[]).await.unwrap();
}

/// Schedulers with connections of their own that all preempt servers of one project as fast as
/// they can. Some of their preemptions come to nothing and count no more.
async fn schedulers_that_race_never_overrun_a_budget(db: TestDb) {
    const MOST: usize = 7;
    let scope = project("p");
    let most = u32::try_from(MOST).unwrap();
    open(&db)
        .await
        .put_budget(&budget(scope, most))
        .await
        .unwrap();
    let mut tasks = JoinSet::new();
    for scheduler in 0..4_u128 {
        let ledger = open(&db).await;
        tasks.spawn(async move {
            let owner = ledger.register(&format!("s{scheduler}")).await.unwrap();
            let (mut written, mut moved) = (0_u32, 0_u32);
            for round in 0..40_u128 {
                let turns = turns(&ledger.budgets().await.unwrap());
                let used = ledger.victims_of_open_rows().await.unwrap().len();
                assert!(used <= MOST, "{used} victims of {MOST}");
                if used == MOST {
                    continue;
                }
                let id = scheduler * 1000 + round + 1;
                let new = row(id, &owner, &[id]);
                match ledger.insert_within(&new, &turns).await {
                    Ok(()) => written += 1,
                    Err(LedgerError::BudgetMoved { .. }) => {
                        moved += 1;
                        continue;
                    }
                    Err(error) => panic!("{error}"),
                }
                if round % 2 == 0 {
                    let document = json!("nothing has happened");
                    let ended = ledger.finish(uuid(id), 1, "refused", &document, RowEnd::Nothing);
                    assert_eq!(ended.await.unwrap(), UpdateResult::Updated(2));
                }
            }
            (written, moved)
        });
    }
    let counts = tasks.join_all().await;
    println!("written, moved: {counts:?}");
    let ledger = open(&db).await;
    let used = ledger.victims_of_open_rows().await.unwrap().len();
    assert_eq!(used, MOST, "{counts:?}");
}

async fn a_ledger_of_an_earlier_version_gets_budgets_and_keeps_its_rows(db: TestDb) {
    let ledger = open(&db).await;
    let owner = ledger.register("a").await.unwrap();
    ledger.insert(&row(1, &owner, &[1])).await.unwrap();
    ledger.close().await;
    db.sql("DROP TABLE nova_budgets").await;
    db.sql("DELETE FROM nova_ledger_migrations WHERE version LIKE '%budgets'")
        .await;
    let state = Ledger::schema_state(&db.config()).await.unwrap();
    assert_eq!(state, SchemaState::Older { pending: 1 });
    let ledger = open(&db).await;
    let heads = ledger.heads("scheduler1", 60_000).await.unwrap();
    assert_eq!((heads.open.len(), heads.has_budgets), (1, false));
    ledger.put_budget(&budget(project("p"), 1)).await.unwrap();
    assert!(
        ledger
            .heads("scheduler1", 60_000)
            .await
            .unwrap()
            .has_budgets
    );
    assert_eq!(one(&ledger, 1).await.victims, [uuid(1)]);
}

on_every_database!(
    budgets_are_set_replaced_and_deleted_for_all_schedulers,
    a_row_that_a_budget_does_not_know_of_is_not_written,
    schedulers_that_race_never_overrun_a_budget,
    a_ledger_of_an_earlier_version_gets_budgets_and_keeps_its_rows,
);
