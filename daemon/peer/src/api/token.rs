//! Authorisation over TCP: a program shows the token, which only the owner of the home can read.

use std::fmt;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;

use super::answer::fail;
use crate::error::{Context, Error, ErrorKind, Result};

/// Random bytes of a token.
const BYTES: usize = 32;

/// An unguessable token. Its `Debug` output does not show it.
#[derive(Clone)]
pub struct AccessToken(Arc<str>);

impl AccessToken {
    /// A new token.
    ///
    /// # Errors
    /// The operating system gives no random numbers.
    pub fn random() -> Result<Self> {
        let mut bytes = [0; BYTES];
        getrandom::fill(&mut bytes).context(ErrorKind::Unexpected, "the operating system gives no random numbers")?;
        Ok(Self(hex::encode(bytes).into()))
    }

    /// A token from its text; `None` if the text is no whole token.
    pub fn parse(text: &str) -> Option<Self> {
        let is_token = text.len() == 2 * BYTES && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_token.then(|| Self(text.into()))
    }

    /// The text of the token.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns `true` if this is the token. The time taken does not depend on how much of it is right: digests are
    /// compared, whose equality is constant in time.
    fn is(&self, shown: &[u8]) -> bool {
        blake3::hash(self.0.as_bytes()) == blake3::hash(shown)
    }
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccessToken(..)")
    }
}

/// Serves only requests that show the token.
pub(super) async fn guard(State(token): State<AccessToken>, request: Request, next: Next) -> Response {
    match objection(&token, request.headers()) {
        None => next.run(request).await,
        Some(message) => {
            let error = Error::new(ErrorKind::Refused, message).hint(
                "send the header `Authorization: Bearer TOKEN`; the token is in trainer-tcp.json in the home of the peer, which its owner can read, \
                 and in MINGLE_TRAINER_TOKEN of a trainer that the peer starts",
            );
            let mut response = fail(StatusCode::UNAUTHORIZED, &error);
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            response
        }
    }
}

/// The reason for which a request is not served, if there is one.
fn objection(token: &AccessToken, headers: &HeaderMap) -> Option<&'static str> {
    let mut shown = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(shown), None) = (shown.next(), shown.next()) else {
        return Some("this address serves only those who show its token, and the request has none");
    };
    let Some((scheme, word)) = shown.as_bytes().split_at_checked(BEARER.len()) else { return Some(NO_BEARER) };
    if !scheme.eq_ignore_ascii_case(BEARER) {
        return Some(NO_BEARER);
    }
    (!token.is(word.trim_ascii())).then_some("this is not the token of this peer")
}

const BEARER: &[u8] = b"bearer ";
const NO_BEARER: &str = "the header Authorization holds no bearer token";

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn refused(token: &AccessToken, shown: &[&str]) -> Option<&'static str> {
        let mut headers = HeaderMap::new();
        for value in shown {
            headers.append(header::AUTHORIZATION, HeaderValue::from_str(value).unwrap());
        }
        objection(token, &headers)
    }

    #[test]
    fn only_the_whole_token_opens() {
        let token = AccessToken::random().unwrap();
        let word = token.as_str();
        assert_eq!(word.len(), 64);
        for right in [format!("Bearer {word}"), format!("bearer {word} "), format!("BEARER  {word}")] {
            assert_eq!(refused(&token, &[&right]), None, "{right}");
        }
        let cut = &word[..63];
        let other = AccessToken::random().unwrap();
        let others = [
            String::new(),
            "Bearer".to_owned(),
            "Bearer ".to_owned(),
            word.to_owned(),
            format!("Basic {word}"),
            format!("Bearer {cut}"),
            format!("Bearer {word}0"),
            format!("Bearer {}", word.to_uppercase()),
            format!("Bearer {}", other.as_str()),
        ];
        for wrong in others.iter().filter(|wrong| **wrong != format!("Bearer {word}")) {
            assert!(refused(&token, &[wrong]).is_some(), "{wrong}");
        }
        assert!(refused(&token, &[]).unwrap().contains("has none"));
        let right = format!("Bearer {word}");
        assert!(refused(&token, &[&right, &right]).is_some(), "two of them are none");
    }

    #[test]
    fn a_token_is_read_back_as_it_was_written_and_is_not_shown_for_debugging() {
        let token = AccessToken::random().unwrap();
        assert_eq!(AccessToken::parse(token.as_str()).unwrap().as_str(), token.as_str());
        assert!(!format!("{token:?}").contains(token.as_str()));
        for wrong in ["", "abc", &"x".repeat(64), &"a".repeat(65)] {
            assert!(AccessToken::parse(wrong).is_none(), "{wrong}");
        }
    }
}
