//! The table of routes, bound to the contracts.

use crate::error::RestError;
use crate::table::{ROUTES, RequestBody, Route};
use axum::http::Method;
use axum::http::uri::PathAndQuery;
use ebbtide_proto::v1;
use percent_encoding::percent_decode_str;
use prost_reflect::{DescriptorPool, FieldDescriptor, Kind, MessageDescriptor, MethodDescriptor};
use std::sync::{Arc, LazyLock};

/// The package of the public services.
pub(crate) const PACKAGE: &str = "ebbtide.v1";

/// A route with the descriptors of its call.
#[derive(Debug)]
pub(crate) struct BoundRoute {
    pub(crate) route: &'static Route,
    pub(crate) method: MethodDescriptor,
    /// `/package.Service/Method`.
    pub(crate) call: PathAndQuery,
    /// The parameters of the path, from left to right.
    pub(crate) parameters: Vec<PathParameter>,
    /// The fields that are query parameters.
    pub(crate) query: Vec<FieldDescriptor>,
}

#[derive(Debug)]
pub(crate) struct PathParameter {
    pub(crate) name: String,
    /// The field, from the top of the request.
    pub(crate) fields: Vec<FieldDescriptor>,
}

/// All routes, found by path.
#[derive(Debug)]
pub(crate) struct Contract {
    pub(crate) routes: Vec<Arc<BoundRoute>>,
    /// For each path the routes, by method.
    paths: matchit::Router<Vec<usize>>,
}

/// A route and the values of its path.
#[derive(Debug)]
pub(crate) struct MatchedRoute {
    pub(crate) route: Arc<BoundRoute>,
    pub(crate) values: Vec<String>,
}

/// The descriptors of the public contracts, with their comments.
pub(crate) fn pool() -> Result<DescriptorPool, RestError> {
    static POOL: LazyLock<Result<DescriptorPool, String>> = LazyLock::new(|| {
        DescriptorPool::decode(v1::DESCRIPTORS).map_err(|error| error.to_string())
    });
    POOL.clone().map_err(RestError::Contract)
}

impl Contract {
    /// Binds the table.
    ///
    /// # Errors
    /// [`RestError::Contract`] with the route that does not fit. A test holds that all fit.
    pub(crate) fn load() -> Result<Self, RestError> {
        let pool = pool()?;
        let bound = ROUTES.iter().map(|route| {
            bind(route, &pool).map(Arc::new).map_err(|problem| {
                RestError::Contract(format!("{} {}: {problem}", route.method, route.path))
            })
        });
        let routes = bound.collect::<Result<Vec<_>, _>>()?;
        let mut shapes: Vec<(String, Vec<usize>)> = Vec::new();
        for (place, bound) in routes.iter().enumerate() {
            let shape = shape(bound.route.path);
            match shapes.iter_mut().find(|(known, _)| *known == shape) {
                Some((_, places)) => places.push(place),
                None => shapes.push((shape, vec![place])),
            }
        }
        let mut paths = matchit::Router::new();
        for (shape, places) in shapes {
            paths
                .insert(shape.as_str(), places)
                .map_err(|error| RestError::Contract(format!("{shape}: {error}")))?;
        }
        Ok(Self { routes, paths })
    }

    /// Finds the route of a request.
    ///
    /// # Errors
    /// [`RestError::NoSuchPath`], [`RestError::Method`], or [`RestError::Parameter`] for a path
    /// that is not UTF-8.
    pub(crate) fn find(&self, method: &Method, path: &str) -> Result<MatchedRoute, RestError> {
        let Ok(matched) = self.paths.at(path) else {
            return Err(RestError::NoSuchPath {
                path: path.chars().take(200).collect(),
            });
        };
        let mut here = matched.value.iter().filter_map(|at| self.routes.get(*at));
        let Some(route) = here.clone().find(|r| r.route.method == method.as_str()) else {
            let allow: Vec<&str> = here.by_ref().map(|r| r.route.method).collect();
            return Err(RestError::Method {
                path: path.to_owned(),
                method: method.to_string(),
                allow: allow.join(", "),
            });
        };
        let mut values = Vec::new();
        for (parameter, (_, raw)) in route.parameters.iter().zip(matched.params.iter()) {
            let text = percent_decode_str(raw).decode_utf8();
            let text = text.map_err(|_| RestError::Parameter {
                name: parameter.name.clone(),
                problem: "is not UTF-8".to_owned(),
            })?;
            values.push(text.into_owned());
        }
        Ok(MatchedRoute {
            route: Arc::clone(route),
            values,
        })
    }
}

/// The path with every parameter called by its place, since several routes of one path may call
/// them differently.
fn shape(path: &str) -> String {
    let parts = path.split('/').enumerate().map(|(place, part)| {
        if part.starts_with('{') {
            format!("{{p{place}}}")
        } else {
            part.to_owned()
        }
    });
    parts.collect::<Vec<_>>().join("/")
}

/// The parameters of a path: their names and the paths of their fields.
fn parameters(path: &str) -> impl Iterator<Item = (&str, &str)> {
    path.split('/').filter_map(|part| {
        let inside = part.strip_prefix('{')?.strip_suffix('}')?;
        Some(inside.split_once('=').unwrap_or((inside, inside)))
    })
}

fn bind(route: &'static Route, pool: &DescriptorPool) -> Result<BoundRoute, String> {
    let (service, method) = route.rpc.split_once('/').ok_or("no Service/Method")?;
    let method = pool
        .get_service_by_name(&format!("{PACKAGE}.{service}"))
        .and_then(|service| service.methods().find(|m| m.name() == method))
        .ok_or_else(|| format!("the contracts have no {}", route.rpc))?;
    let input = method.input();
    let parameters = parameters(route.path)
        .map(|(name, path)| {
            Ok(PathParameter {
                name: name.to_owned(),
                fields: fields(&input, path)?,
            })
        })
        .collect::<Result<Vec<_>, String>>()?;
    let taken = |field: &FieldDescriptor| {
        parameters.iter().any(|p| p.fields.first() == Some(field))
            || matches!(route.body, RequestBody::Field(name) if name == field.name())
    };
    let query = match route.body {
        RequestBody::Message => Vec::new(),
        RequestBody::Ignored | RequestBody::Field(_) => {
            input.fields().filter(|field| !taken(field)).collect()
        }
    };
    if let Some(field) = query.iter().find(|f| f.is_map() || is_structured(f)) {
        return Err(format!(
            "field {} cannot be a query parameter",
            field.name()
        ));
    }
    if let RequestBody::Field(name) = route.body {
        fields(&input, name)?;
    }
    let call = format!("/{PACKAGE}.{}", route.rpc);
    Ok(BoundRoute {
        route,
        call: call.parse().map_err(|_| "the call is no path")?,
        method,
        parameters,
        query,
    })
}

/// True for fields that a text cannot say.
fn is_structured(field: &FieldDescriptor) -> bool {
    matches!(field.kind(), Kind::Message(_) | Kind::Enum(_) | Kind::Bytes)
}

/// The fields on a path of names.
fn fields(top: &MessageDescriptor, path: &str) -> Result<Vec<FieldDescriptor>, String> {
    let mut message = Some(top.clone());
    let mut found = Vec::new();
    for name in path.split('.') {
        let field = message
            .and_then(|message| message.get_field_by_name(name))
            .ok_or_else(|| format!("{} has no field {path}", top.name()))?;
        message = match field.kind() {
            Kind::Message(message) => Some(message),
            _ => None,
        };
        found.push(field);
    }
    Ok(found)
}

#[cfg(test)]
#[path = "contract_tests.rs"]
mod tests;
