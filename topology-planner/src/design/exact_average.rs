//! To be written.

use super::{Design, DesignError, Request};

pub(super) fn design(_request: &Request<'_>) -> Result<Design, DesignError> {
    unimplemented!("exact-average")
}
