//! The table of routes: which method and path is which call.

#[derive(Debug, Clone, Copy)]
pub struct Route {
    /// The HTTP method.
    pub method: &'static str,
    /// The path. `{name}` is a parameter and the field of the same name; `{name=field.path}` names
    /// another field.
    pub path: &'static str,
    /// `Service/Method` of `ebbtide.v1`.
    pub rpc: &'static str,
    /// What the body of the request is.
    pub body: RequestBody,
    pub answer: Answer,
    /// Set for lists that are read page by page.
    pub page: Option<Page>,
    /// The answer has an entity tag.
    pub etag: bool,
    /// The body may be as large as a plugin.
    pub large: bool,
}

/// What the body of a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestBody {
    /// Not read. Fields that are not in the path are query parameters.
    Ignored,
    /// The whole request without the fields of the path. No body is the same as `{}`.
    Message,
    /// One field of the request.
    Field(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The message as JSON, with this status. 204 has no body.
    Json(u16),
    /// A stream of messages as Server-Sent Events. The field is the position of an event.
    Events(&'static str),
    /// A stream of messages whose field is a part of one JSON document.
    Document(&'static str),
}

/// How a list is continued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// The field of the answer with the rows.
    pub rows: &'static str,
    /// The field of a row that is the marker of the next page.
    pub marker: &'static str,
    /// Rows of a page without `limit`, as the contract says.
    pub default_limit: u32,
}

impl Page {
    /// Most rows of any page, as the contracts say.
    pub const MOST: u32 = 1000;
}

impl Route {
    const fn new(method: &'static str, path: &'static str, rpc: &'static str) -> Self {
        Self {
            method,
            path,
            rpc,
            body: RequestBody::Ignored,
            answer: Answer::Json(200),
            page: None,
            etag: false,
            large: false,
        }
    }

    const fn body(mut self, body: RequestBody) -> Self {
        self.body = body;
        self
    }

    const fn answer(mut self, answer: Answer) -> Self {
        self.answer = answer;
        self
    }

    const fn page(mut self, rows: &'static str, marker: &'static str) -> Self {
        self.page = Some(Page {
            rows,
            marker,
            default_limit: Page::MOST,
        });
        self
    }

    const fn default_limit(mut self, rows: u32) -> Self {
        if let Some(page) = &mut self.page {
            page.default_limit = rows;
        }
        self
    }

    const fn etag(mut self) -> Self {
        self.etag = true;
        self
    }

    const fn large(mut self) -> Self {
        self.large = true;
        self
    }
}

const fn get(path: &'static str, rpc: &'static str) -> Route {
    Route::new("GET", path, rpc)
}

const fn post(path: &'static str, rpc: &'static str) -> Route {
    Route::new("POST", path, rpc).body(RequestBody::Message)
}

const fn put(path: &'static str, rpc: &'static str) -> Route {
    Route::new("PUT", path, rpc).body(RequestBody::Message)
}

const fn patch(path: &'static str, rpc: &'static str) -> Route {
    Route::new("PATCH", path, rpc).body(RequestBody::Message)
}

const fn delete(path: &'static str, rpc: &'static str) -> Route {
    Route::new("DELETE", path, rpc)
}

const CREATED: Answer = Answer::Json(201);
/// The servers exist, their start is under way.
const ACCEPTED: Answer = Answer::Json(202);
const NO_CONTENT: Answer = Answer::Json(204);

use RequestBody::Field;

/// Every route.
pub const ROUTES: &[Route] = &[
    post("/v1/servers", "Servers/CreateServers").answer(ACCEPTED),
    get("/v1/servers", "Servers/ListServers").page("servers", "id"),
    get("/v1/servers/{id}", "Servers/GetServer").etag(),
    delete("/v1/servers/{id}", "Servers/DeleteServer"),
    post("/v1/servers/{id}/release", "Servers/ReleaseServer"),
    post("/v1/server-groups", "Servers/CreateServerGroup")
        .body(Field("group"))
        .answer(CREATED),
    get("/v1/server-groups", "Servers/ListServerGroups"),
    delete("/v1/server-groups/{id}", "Servers/DeleteServerGroup").answer(NO_CONTENT),
    get("/v1/evacuations", "Servers/ListEvacuations").page("evacuations", "id"),
    get("/v1/evacuations/{id}", "Servers/GetEvacuation").etag(),
    post("/v1/claims", "Scheduler/SelectDestinations").answer(ACCEPTED),
    post("/v1/what-if", "Scheduler/WhatIf"),
    get("/v1/decisions", "Scheduler/ListDecisions")
        .page("decisions", "id")
        .default_limit(20),
    get("/v1/decisions/{id}", "Scheduler/Explain"),
    get("/v1/events", "Scheduler/Watch").answer(Answer::Events("sequence")),
    get("/v1/region", "Scheduler/RegionSummary"),
    get("/v1/hosts", "Admin/ListHosts"),
    get("/v1/hosts/{name}", "Admin/GetHost").etag(),
    post("/v1/hosts/{name}/disable", "Admin/DisableHost"),
    post("/v1/hosts/{name}/enable", "Admin/EnableHost"),
    delete("/v1/hosts/{name}", "Admin/RemoveHost"),
    post("/v1/hosts/{name}/readmit", "Admin/ReadmitHost").answer(NO_CONTENT),
    post("/v1/hosts/{name}/reclaim", "Admin/ReclaimHost"),
    get("/v1/hosts/{name}/reclaim", "Admin/GetReclaim"),
    post("/v1/hosts/{name}/return", "Admin/ReturnHost"),
    get("/v1/reclaims", "Admin/ListReclaims"),
    post("/v1/flavors", "Admin/CreateFlavor")
        .body(Field("flavor"))
        .answer(CREATED),
    get("/v1/flavors", "Admin/ListFlavors"),
    get("/v1/flavors/{id}", "Admin/GetFlavor").etag(),
    delete("/v1/flavors/{id}", "Admin/DeleteFlavor").answer(NO_CONTENT),
    put("/v1/aggregates/{id=aggregate.name}", "Admin/PutAggregate").body(Field("aggregate")),
    get("/v1/aggregates", "Admin/ListAggregates"),
    delete("/v1/aggregates/{id}", "Admin/DeleteAggregate").answer(NO_CONTENT),
    // Budgets have no name: the project or server group in the body says whose it is.
    put("/v1/budgets", "Admin/PutBudget").body(Field("budget")),
    get("/v1/budgets", "Admin/ListBudgets"),
    delete("/v1/budgets", "Admin/DeleteBudget").answer(NO_CONTENT),
    post("/v1/adoptions", "Admin/AdoptServer").answer(CREATED),
    get("/v1/audit", "Admin/Audit"),
    post("/v1/reconcile", "Admin/Reconcile"),
    get("/v1/plugins", "Admin/ListPlugins"),
    post("/v1/plugins", "Plugins/AddPlugin")
        .answer(CREATED)
        .large(),
    patch("/v1/plugins/{name}", "Plugins/ChangePlugin").answer(NO_CONTENT),
    delete("/v1/plugins/{name}", "Plugins/RemovePlugin").answer(NO_CONTENT),
    put("/v1/cost-module", "Plugins/UseCostModule"),
    get("/v1/shadow", "Plugins/ShadowReport"),
    get("/v1/region/record", "Plugins/RecordRegion").answer(Answer::Document("piece")),
    get("/v1/lives", "Market/ListLives").page("lives", "id"),
    get("/v1/prices", "Market/ListPrices"),
    get("/v1/price-history", "Market/ListPriceHistory").page("prices", "id"),
    get("/v1/bills", "Market/ListBills"),
    get("/v1/bills/hours", "Market/ListBilledHours").page("hours", "id"),
    get("/v1/advice", "Market/GetAdvice"),
];

/// Calls that have no route on purpose: `Service/Method`, and why.
pub const LEFT_OUT: &[(&str, &str)] = &[];
