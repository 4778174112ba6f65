//! The weight of a site's change: `equal`, `samples` or `samples:N`.

use mingle_models::SiteWeight;
use mingle_peer::{Error, ErrorKind, Result};

pub use mingle_models::AskedWeight as WeightChoice;

/// The site weight for an asked one.
///
/// # Errors
/// The number of samples that count as one site is not known.
pub fn settled_weight(asked: WeightChoice) -> Result<SiteWeight> {
    asked.settled().ok_or_else(|| {
        Error::new(ErrorKind::BadInput, "--weight samples: it is not known how many samples count as one site")
            .hint("say the mean number of training samples of a site, such as --weight samples:1000")
    })
}
