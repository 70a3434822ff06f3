#![allow(clippy::unwrap_used)]

use super::*;

fn asked(method: Method, path: &str, headers: &[(&str, &str)]) -> Option<Response<Bytes>> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let name: header::HeaderName = name.parse().unwrap();
        map.insert(name, value.parse().unwrap());
    }
    answer(&method, path, &map)
}

fn header<'a>(answer: &'a Response<Bytes>, name: &str) -> &'a str {
    answer
        .headers()
        .get(name)
        .map_or("", |value| value.to_str().unwrap())
}

#[test]
fn every_answer_has_the_headers_that_protect_it() {
    let answers = [
        asked(Method::GET, "/console/", &[]),
        asked(Method::GET, "/console", &[]),
        asked(Method::GET, "/console/no-such-file.js", &[]),
        asked(Method::POST, "/console/", &[]),
        asked(Method::GET, "/", &[("accept", "text/html,*/*;q=0.8")]),
    ];
    for answer in answers {
        let answer = answer.unwrap();
        let policy = header(&answer, "content-security-policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; "));
        assert!(!policy.contains("unsafe"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
        assert_eq!(header(&answer, "x-content-type-options"), "nosniff");
        assert_eq!(header(&answer, "referrer-policy"), "no-referrer");
        assert_eq!(header(&answer, "x-frame-options"), "DENY");
        assert_eq!(header(&answer, "cross-origin-opener-policy"), "same-origin");
        assert_eq!(header(&answer, "set-cookie"), "");
        assert_eq!(header(&answer, "access-control-allow-origin"), "");
    }
}

#[test]
fn a_browser_that_asks_for_the_top_is_sent_to_the_console_and_a_client_of_openstack_is_not() {
    let browser = asked(Method::GET, "/", &[("accept", "text/html")]).unwrap();
    assert_eq!(browser.status(), StatusCode::SEE_OTHER);
    assert_eq!(header(&browser, "location"), "/console/");
    assert!(asked(Method::GET, "/", &[("accept", "application/json")]).is_none());
    assert!(asked(Method::GET, "/", &[("accept", "*/*")]).is_none());
    assert!(asked(Method::POST, "/", &[("accept", "text/html")]).is_none());
}

#[test]
fn paths_of_the_api_are_not_the_consoles() {
    for path in ["/v1/servers", "/v1", "/consoles", "/consolee/", ""] {
        assert!(asked(Method::GET, path, &[("accept", "text/html")]).is_none());
    }
}

#[test]
fn names_outside_of_the_embedded_files_are_not_found() {
    for name in [
        "../Cargo.toml",
        "..%2fCargo.toml",
        "/etc/passwd",
        ".gitignore",
        "index.html.gz",
        "assets",
        "%00",
    ] {
        let answer = asked(Method::GET, &format!("/console/{name}"), &[]).unwrap();
        assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{name}");
        assert!(answer.body().is_empty(), "{name}");
    }
}

#[test]
fn only_get_and_head_are_taken() {
    for method in [Method::POST, Method::PUT, Method::DELETE, Method::OPTIONS] {
        let answer = asked(method, "/console/", &[]).unwrap();
        assert_eq!(answer.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(header(&answer, "allow"), "GET, HEAD");
    }
    let head = asked(Method::HEAD, "/console/", &[]).unwrap();
    assert!(head.body().is_empty());
    assert_eq!(header(&head, "content-type"), "text/html; charset=utf-8");
}

#[test]
fn the_document_is_there_or_says_how_to_build_it() {
    let answer = asked(Method::GET, "/console/", &[]).unwrap();
    let text = std::str::from_utf8(answer.body()).unwrap();
    if is_built() {
        assert_eq!(answer.status(), StatusCode::OK);
        assert!(text.contains("/console/assets/"), "{text}");
    } else {
        assert_eq!(answer.status(), StatusCode::NOT_FOUND);
        assert!(text.contains("./console/build"), "{text}");
    }
    assert_eq!(header(&answer, "cache-control"), "no-cache");
}

#[test]
fn every_embedded_file_is_served_compressed_and_not_again_if_it_is_known() {
    for name in Files::iter().filter(|name| is_document(name)) {
        let path = format!("/console/{name}");
        let plain = asked(Method::GET, &path, &[]).unwrap();
        assert_eq!(plain.status(), StatusCode::OK, "{name}");
        assert_ne!(header(&plain, "content-type"), "application/octet-stream");
        let accepts = [("accept-encoding", "gzip, deflate, br, zstd")];
        let small = asked(Method::GET, &path, &accepts).unwrap();
        assert_eq!(header(&small, "content-encoding"), "gzip", "{name}");
        assert!(small.body().starts_with(&[0x1f, 0x8b]), "{name}");
        let tag = header(&plain, "etag");
        let known = asked(Method::GET, &path, &[("if-none-match", tag)]).unwrap();
        assert_eq!(known.status(), StatusCode::NOT_MODIFIED);
        assert!(known.body().is_empty());
    }
}

#[test]
fn a_client_that_refuses_gzip_gets_the_file_as_it_is() {
    let mut map = HeaderMap::new();
    for (accepted, wanted) in [
        ("gzip", true),
        ("deflate, GZIP;q=0.5", true),
        ("gzip;q=0", false),
        ("br", false),
    ] {
        map.insert(header::ACCEPT_ENCODING, accepted.parse().unwrap());
        assert_eq!(accepts_gzip(&map), wanted, "{accepted}");
    }
}
