//! How much the change of a site counts: `--weight equal|samples|samples:N`.

use mingle_models::SiteWeight;
use mingle_peer::{Error, ErrorKind, Result};

pub(crate) use mingle_models::AskedWeight as WeightArg;

/// What a weight comes to.
///
/// # Errors
/// Nobody has said how many samples count as one site.
pub(crate) fn settled_weight(asked: WeightArg) -> Result<SiteWeight> {
    asked.settled().ok_or_else(|| {
        Error::new(ErrorKind::BadInput, "--weight samples: it is not known how many samples count as one site")
            .hint("say the mean number of training samples of a site, such as --weight samples:1000")
    })
}
