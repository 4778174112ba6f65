//! `mingle recommend`: recommendations for a user by the recommender in a home.

use std::fs;

use mingle_builtin::errors::recommend_error;
use mingle_peer::error::Context;
use mingle_peer::{Error, ErrorKind, Home, Result};
use mingle_problems::RECOMMENDER;
use mingle_recommend::Recommender;

use crate::cli::RecommendArgs;
use crate::out;

/// Largest recommender.
const MOST_BYTES: u64 = 16 << 30;

/// Prints the best items for a user.
pub(super) fn execute(arguments: &RecommendArgs, json: bool) -> Result {
    let path = match &arguments.model {
        Some(path) => path.clone(),
        None => Home::at(arguments.home.home.as_deref())?.root().join(RECOMMENDER),
    };
    let doing = || format!("cannot read {}", path.display());
    let bytes = match fs::metadata(&path) {
        Ok(file) if file.len() > MOST_BYTES => {
            return Err(Error::new(ErrorKind::BadInput, format!("{}: longer than any recommender", path.display())));
        }
        Ok(_) => fs::read(&path).context(ErrorKind::BadInput, doing())?,
        Err(error) => {
            return Err(error).context(ErrorKind::BadInput, doing()).map_err(|error| {
                error.hint("a peer leaves it there when it has learned with `mingle run --problem` a problem of kind recommendation: docs/recommendations.md")
            });
        }
    };
    let recommender = Recommender::from_bytes(&bytes).map_err(recommend_error)?;
    let found = recommender.recommend(&arguments.user, arguments.top).map_err(recommend_error)?;
    let known = recommender.known(&arguments.user).map_err(recommend_error)?;
    if json {
        out::line(serde_json::json!({
            "schema": "mingle.recommendation/1", "user": arguments.user, "known": known.len(), "items": found,
        }));
        return Ok(());
    }
    out::line(format!("{} knows {} items; next might come", arguments.user, known.len()));
    for (rank, one) in found.iter().enumerate() {
        out::line(format!("{:>4}  {:<32} {:>8.4}", rank + 1, one.item, one.score));
    }
    Ok(())
}
