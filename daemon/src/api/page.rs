//! The page: one file that the program carries, with everything that it needs.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;

use super::answer::{self, refuse};
use crate::failure::Kind;

const PAGE: &str = include_str!("page.html");
/// Stands in the page where the nonce goes.
const NONCE: &str = "{{nonce}}";

/// The page. Its own script and style are allowed by a nonce; nothing else runs, and nothing comes from elsewhere.
pub(super) async fn page() -> Response {
    let mut random = [0; 16];
    if getrandom::fill(&mut random).is_err() {
        return refuse(StatusCode::INTERNAL_SERVER_ERROR, Kind::Unexpected, "the system gives no random numbers");
    }
    let nonce = hex::encode(random);
    let Ok(policy) = HeaderValue::from_str(&policy(&nonce)) else {
        return refuse(StatusCode::INTERNAL_SERVER_ERROR, Kind::Unexpected, "the page has no policy");
    };
    let mut response = answer::typed("text/html; charset=utf-8", PAGE.replace(NONCE, &nonce));
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    response
}

fn policy(nonce: &str) -> String {
    format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; img-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_needs_nothing_from_elsewhere_and_runs_only_what_the_policy_allows() {
        for foreign in ["https://", "http://", "src=\"//", "@import", "innerHTML", "eval(", "onclick=", "style=\""] {
            let found = PAGE.replace("http://www.w3.org/2000/svg", "");
            assert!(!found.contains(foreign), "the page contains {foreign}");
        }
        let scripts = PAGE.matches("<script").count() + PAGE.matches("<style").count();
        assert_eq!(scripts, PAGE.matches(NONCE).count(), "each carries the nonce");
        assert!(scripts >= 2);
    }
}
