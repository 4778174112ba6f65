//! The page: one answer that contains all that it needs, assembled from the files in `page/`.

use std::sync::LazyLock;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;

use super::answer::{self, refuse};
use crate::error::ErrorKind;

const SCRIPTS: [&str; 4] = [
    include_str!("page/words.js"),
    include_str!("page/chart.js"),
    include_str!("page/plan.js"),
    include_str!("page/page.js"),
];
/// Placeholders of the page's parts.
const STYLE: &str = "{{style}}";
const SCRIPT: &str = "{{script}}";
const NONCE: &str = "{{nonce}}";

static PAGE: LazyLock<String> = LazyLock::new(|| {
    include_str!("page/page.html").replace(STYLE, include_str!("page/page.css")).replace(SCRIPT, &SCRIPTS.join("\n"))
});

/// The page. Its own script and style are allowed by a nonce; nothing else runs, and nothing comes from elsewhere.
pub(super) async fn page() -> Response {
    let mut random = [0; 16];
    if getrandom::fill(&mut random).is_err() {
        return refuse(StatusCode::INTERNAL_SERVER_ERROR, ErrorKind::Unexpected, "the system gives no random numbers");
    }
    let nonce = hex::encode(random);
    let Ok(policy) = HeaderValue::from_str(&policy(&nonce)) else {
        return refuse(StatusCode::INTERNAL_SERVER_ERROR, ErrorKind::Unexpected, "the page has no policy");
    };
    let mut response = answer::typed("text/html; charset=utf-8", PAGE.replace(NONCE, &nonce));
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    response
}

/// The icon of the page's browser tab.
pub(super) async fn icon() -> Response {
    answer::typed("image/svg+xml", include_str!("page/icon.svg"))
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
    use crate::status::PeerState;

    #[test]
    fn the_page_needs_nothing_from_elsewhere_and_runs_only_what_the_policy_allows() {
        let found = PAGE.replace("http://www.w3.org/2000/svg", "");
        for foreign in ["https://", "http://", "src=\"//", "@import", "innerHTML", "eval(", "onclick=", "style=\""] {
            assert!(!found.contains(foreign), "the page contains {foreign}");
        }
        let scripts = PAGE.matches("<script").count() + PAGE.matches("<style ").count();
        assert_eq!(scripts, PAGE.matches(NONCE).count(), "each carries the nonce");
        assert_eq!(scripts, 2);
    }

    #[test]
    fn the_page_has_all_its_parts_and_stays_small() {
        assert!(!PAGE.contains(STYLE) && !PAGE.contains(SCRIPT));
        assert_eq!(PAGE.matches("</script>").count(), 1, "no part ends the script early");
        assert!(PAGE.len() < 40_000, "{} bytes", PAGE.len());
    }

    #[test]
    fn the_page_calls_each_state_what_the_terminal_calls_it() {
        for state in PeerState::ALL {
            let special = format!("  {}: \"", state.name());
            let words = match PAGE.split_once(&special) {
                Some((_, rest)) => rest.split('"').next().unwrap_or_default().to_owned(),
                None => state.name().replace('_', " "),
            };
            assert_eq!(words, state.to_string());
        }
    }
}
