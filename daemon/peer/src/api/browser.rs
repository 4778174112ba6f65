//! Protection against other web pages: a page from elsewhere can make a browser send requests here, also under a name
//! that its owner points at this machine (DNS rebinding).
//!
//! A request is served only if it reads, if it names this server by an address or as `localhost`, which no stranger can
//! register, and if the page that it comes from, where the browser names one, is the one served here.

use axum::extract::Request;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use std::net::IpAddr;

use super::answer::refuse;
use crate::error::ErrorKind;

/// Rejects requests that come neither from the page served here nor from a program, and adds strict browser headers.
pub(super) async fn guard(request: Request, next: Next) -> Response {
    let mut response = match objection(request.method(), request.headers()) {
        None => next.run(request).await,
        Some((status, message)) => refuse(status, ErrorKind::Refused, message),
    };
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    if response.status() == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    response
}

/// The reason for which a request is not served, if there is one.
fn objection(method: &Method, headers: &HeaderMap) -> Option<(StatusCode, &'static str)> {
    if !matches!(*method, Method::GET | Method::HEAD) {
        return Some((
            StatusCode::METHOD_NOT_ALLOWED,
            "this address only shows: what changes a peer goes through the socket in its home (mingle stop)",
        ));
    }
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().ok().filter(|host| is_local_name(host)),
        _ => None,
    };
    let Some(host) = host else {
        return Some((StatusCode::FORBIDDEN, "name this server by its IP address, or as localhost"));
    };
    let is_foreign =
        |origin: &HeaderValue| origin.to_str().ok().and_then(|text| text.strip_prefix("http://")) != Some(host);
    if headers.get_all(header::ORIGIN).iter().any(is_foreign) {
        return Some((StatusCode::FORBIDDEN, "other web pages may not look at this peer"));
    }
    let site = headers.get("sec-fetch-site").and_then(|site| site.to_str().ok());
    // A link on another page may lead here; no other request of that page is served.
    let navigates = headers.get("sec-fetch-mode").is_some_and(|mode| mode == "navigate");
    if matches!(site, Some("cross-site" | "same-site")) && !navigates {
        return Some((StatusCode::FORBIDDEN, "other web pages may not look at this peer"));
    }
    None
}

/// Returns `true` if a Host header names an IP address or `localhost`.
fn is_local_name(host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return false };
    if authority.as_str().contains('@') {
        return false;
    }
    let name = authority.host();
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn status(method: &Method, headers: &[(&'static str, &'static str)]) -> Option<u16> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_static(value));
        }
        objection(method, &map).map(|(status, _)| status.as_u16())
    }

    #[test]
    fn programs_and_the_page_itself_may_read() {
        for host in ["127.0.0.1:7717", "localhost:7717", "LocalHost", "[::1]:7717", "10.0.1.5:80"] {
            assert_eq!(status(&Method::GET, &[("host", host)]), None, "{host}");
        }
        let own = [("host", "127.0.0.1:7717"), ("origin", "http://127.0.0.1:7717"), ("sec-fetch-site", "same-origin")];
        assert_eq!(status(&Method::GET, &own), None);
        let link = [("host", "127.0.0.1:7717"), ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")];
        assert_eq!(status(&Method::GET, &link), None);
    }

    #[test]
    fn a_name_that_somebody_could_register_is_refused() {
        for host in ["evil.example:7717", "localhost.evil.example", "127.0.0.1.evil.example", "a@127.0.0.1", "", "[::1"]
        {
            assert_eq!(status(&Method::GET, &[("host", host)]), Some(403), "{host}");
        }
        assert_eq!(status(&Method::GET, &[]), Some(403));
        assert_eq!(status(&Method::GET, &[("host", "127.0.0.1"), ("host", "evil.example")]), Some(403));
    }

    #[test]
    fn pages_from_elsewhere_are_refused() {
        for origin in ["http://evil.example", "https://127.0.0.1:7717", "http://127.0.0.1:8080", "null"] {
            assert_eq!(status(&Method::GET, &[("host", "127.0.0.1:7717"), ("origin", origin)]), Some(403), "{origin}");
        }
        let image = [("host", "127.0.0.1:7717"), ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")];
        assert_eq!(status(&Method::GET, &image), Some(403));
    }

    #[test]
    fn nothing_can_be_changed() {
        for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH, Method::OPTIONS] {
            assert_eq!(status(&method, &[("host", "127.0.0.1:7717")]), Some(405), "{method}");
        }
    }
}
