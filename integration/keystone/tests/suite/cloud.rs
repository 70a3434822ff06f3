//! A real Keystone with users, projects, roles and the service `preemption`.

use ebbtide_harness::{Keystone, ServerSettings};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

pub(crate) struct Cloud {
    pub(crate) keystone: Keystone,
    pub(crate) admin: String,
    pub(crate) project: String,
    pub(crate) service: String,
    roles: Value,
}

/// The status, the header `X-Subject-Token` and the body of an answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) token: String,
    pub(crate) body: Value,
}

impl Cloud {
    /// With further lines for keystone.conf. The users `nova` (a service), `ada` (a member), `rita`
    /// (a reader) and `eve` (without a role) have their names as passwords.
    pub(crate) async fn start(more: &str) -> Self {
        let settings = ServerSettings::temporary().file("extra.conf", more);
        let keystone = Keystone::start_with(settings).await.unwrap();
        let mut cloud = Self {
            keystone,
            admin: String::new(),
            project: String::new(),
            service: String::new(),
            roles: Value::Null,
        };
        let scope = json!({"project": {"name": "admin", "domain": {"id": "default"}}});
        cloud.admin = cloud.log_in("admin", scope).await;
        cloud
            .post("/v3/roles", json!({"role": {"name": "service"}}))
            .await;
        cloud.roles = cloud.get("/v3/roles").await["roles"].take();
        cloud.project = cloud.new_project("research").await;
        let services = cloud.new_project("service").await;
        cloud.user("nova", &[("service", &services)]).await;
        cloud
            .user("ada", &[("member", &cloud.project.clone())])
            .await;
        cloud
            .user("rita", &[("reader", &cloud.project.clone())])
            .await;
        cloud.user("eve", &[]).await;
        let service = json!({"service": {"type": "preemption", "name": "ebbtide"}});
        let service = cloud.post("/v3/services", service).await;
        cloud.service = id(&service["service"]);
        for interface in ["public", "internal"] {
            let endpoint = json!({"endpoint": {
                "service_id": cloud.service, "interface": interface, "region_id": "RegionOne",
                "url": format!("http://{interface}.example"),
            }});
            cloud.post("/v3/endpoints", endpoint).await;
        }
        cloud
    }

    /// Starts Keystone again with other further lines.
    pub(crate) async fn restart_with(&mut self, more: &str) {
        std::fs::write(self.keystone.directory().join("extra.conf"), more).unwrap();
        self.keystone.restart().await.unwrap();
    }

    async fn new_project(&self, name: &str) -> String {
        let project = json!({"project": {"name": name, "domain_id": "default"}});
        id(&self.post("/v3/projects", project).await["project"])
    }

    async fn user(&self, name: &str, roles: &[(&str, &str)]) {
        let user = json!({"user": {"name": name, "password": name, "domain_id": "default"}});
        let user = id(&self.post("/v3/users", user).await["user"]);
        for (role, project) in roles {
            let role = self.role(role);
            let path = format!("/v3/projects/{project}/users/{user}/roles/{role}");
            self.call("PUT", &path, None).await;
        }
        if name == "nova" {
            let path = format!("/v3/system/users/{user}/roles/{}", self.role("reader"));
            self.call("PUT", &path, None).await;
        }
    }

    fn role(&self, name: &str) -> String {
        let roles = self.roles.as_array().unwrap();
        id(roles.iter().find(|role| role["name"] == name).unwrap())
    }

    /// The URL that sections name.
    pub(crate) fn url(&self) -> String {
        format!("{}/v3", self.keystone.url())
    }

    /// A token of a user by its name, which is the password.
    pub(crate) async fn log_in(&self, name: &str, scope: Value) -> String {
        let user = json!({"name": name, "domain": {"id": "default"}, "password": name});
        let identity = json!({"methods": ["password"], "password": {"user": user}});
        self.issue(json!({"identity": identity, "scope": scope}))
            .await
    }

    /// The same for the project.
    pub(crate) async fn token_of(&self, name: &str) -> String {
        self.log_in(name, json!({"project": {"id": self.project}}))
            .await
    }

    pub(crate) async fn issue(&self, auth: Value) -> String {
        let answer = self
            .send("POST", "/v3/auth/tokens", &[], Some(json!({"auth": auth})))
            .await;
        assert_eq!(answer.status, 201, "{}", answer.body);
        answer.token
    }

    /// What Keystone says of a token.
    pub(crate) async fn describe(&self, token: &str) -> Answer {
        let headers = [
            ("X-Auth-Token", self.admin.as_str()),
            ("X-Subject-Token", token),
            ("OpenStack-Identity-Access-Rules", "1"),
        ];
        self.send("GET", "/v3/auth/tokens", &headers, None).await
    }

    pub(crate) async fn revoke(&self, token: &str) {
        let headers = [("X-Auth-Token", token), ("X-Subject-Token", token)];
        let answer = self.send("DELETE", "/v3/auth/tokens", &headers, None).await;
        assert_eq!(answer.status, 204, "{}", answer.body);
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        self.call("GET", path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Value {
        self.call("POST", path, Some(body)).await
    }

    /// As the administrator.
    async fn call(&self, method: &str, path: &str, body: Option<Value>) -> Value {
        self.call_as(&self.admin, method, path, body).await
    }

    pub(crate) async fn call_as(
        &self,
        token: &str,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> Value {
        let answer = self
            .send(method, path, &[("X-Auth-Token", token)], body)
            .await;
        if answer.status >= 300 {
            let log = std::fs::read_to_string(self.keystone.log_path()).unwrap_or_default();
            let end = log.len().saturating_sub(6_000);
            panic!("{method} {path}: {} {}", answer.body, &log[end..]);
        }
        answer.body
    }

    async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<Value>,
    ) -> Answer {
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let mut request = format!(
            "{method} {path} HTTP/1.0\r\nContent-Length: {}\r\n",
            body.len()
        );
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        request += &format!("Content-Type: application/json\r\n\r\n{body}");
        let mut stream = TcpStream::connect(("127.0.0.1", self.keystone.port()))
            .await
            .unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let token = head
            .lines()
            .find_map(|line| line.strip_prefix("X-Subject-Token: "));
        Answer {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            token: token.unwrap_or_default().to_owned(),
            body: serde_json::from_str(body).unwrap_or_else(|_| Value::from(body)),
        }
    }
}

pub(crate) fn id(of: &Value) -> String {
    of["id"]
        .as_str()
        .unwrap_or_else(|| panic!("no id: {of}"))
        .to_owned()
}
