//! New logins for Nova's databases, while they are used.

use crate::cloud::{CELL1, CloudDatabases, NOVA_34};
use ebbtide_nova_db::{NovaDb, Secret};
use ebbtide_runtime::login::Renewal;

const TEMPLATE: &str = "{scheme}://{username}:{password}@{hostname}:{port}/{path}?{query}";

/// The URL with another login.
fn as_user(url: &str, user: &str, password: &str) -> Secret {
    let (_, address) = url.split_once('@').unwrap();
    Secret::new(format!(
        "mysql+pymysql://{user}:{password}@{address}?charset=utf8"
    ))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_password_counts_for_new_connections_and_a_wrong_one_for_none() {
    let cloud = CloudDatabases::mariadb(NOVA_34).await;
    let name = |url: &str| {
        url.rsplit('/')
            .next()
            .unwrap()
            .split('?')
            .next()
            .unwrap()
            .to_owned()
    };
    let (api, cell) = (name(&cloud.api.url), name(&cloud.cell.url));
    let user = format!("nova_{api}");
    let set = |password: &str| format!("ALTER USER '{user}' IDENTIFIED BY '{password}'");
    cloud
        .api
        .sql(&format!("CREATE USER '{user}' IDENTIFIED BY 'old'"))
        .await;
    for database in [&api, &cell] {
        cloud
            .api
            .sql(&format!("GRANT ALL ON `{database}`.* TO '{user}'"))
            .await;
    }
    let template = TEMPLATE.replace("{path}", &cell).replace("/?", "?");
    let update = "UPDATE cell_mappings SET database_connection";
    cloud
        .api
        .sql(&format!("{update} = '{template}' WHERE id = 2"))
        .await;
    let mut config = cloud.config();
    config.api_url = as_user(&cloud.api.url, &user, "old");
    config.main_url = as_user(&cloud.cell.url, &user, "old");
    let db = NovaDb::connect(&config).await.unwrap();
    db.cell(CELL1).unwrap().ping().await.unwrap();

    // A password that the server does not know: refused, and the old one goes on to work.
    let wrong = as_user(&cloud.api.url, &user, "geheim");
    let error = db.renew_api_login(&wrong).await.unwrap_err();
    assert_eq!(error.code(), "EB-NOVADB-002", "{error}");
    assert!(!error.to_string().contains("geheim"), "{error}");
    let kill = format!("KILL USER '{user}'");
    cloud.api.sql(&kill).await;
    db.cells().await.unwrap();

    // Another database is not a login.
    let other = as_user(&cloud.cell.url, &user, "old");
    let renewed = db.renew_api_login(&other).await.unwrap();
    assert!(matches!(renewed, Renewal::NextStart(_)), "{renewed:?}");

    cloud.api.sql(&set("new")).await;
    let new_api = as_user(&cloud.api.url, &user, "new");
    let new_main = as_user(&cloud.cell.url, &user, "new");
    assert_eq!(
        db.renew_api_login(&new_api).await.unwrap(),
        Renewal::Accepted
    );
    assert_eq!(
        db.renew_main_login(&new_main).await.unwrap(),
        Renewal::Accepted
    );
    assert_eq!(
        db.renew_main_login(&new_main).await.unwrap(),
        Renewal::Unchanged
    );
    cloud.api.sql(&kill).await;
    // The cell's URL is a template, and has the new password from here on.
    db.cells().await.unwrap();
    db.cell(CELL1).unwrap().ping().await.unwrap();
    db.close().await;
    cloud.api.sql(&format!("DROP USER '{user}'")).await;
}
