//! The inputs of a site to the averages of models.

use mingle_robust::{Site, Steering};

use crate::collectives::Collectives;
use crate::error::SolveError;

/// The messages of a site to the averages. A change of the penalty moves the messages of the sites far apart, and
/// averages by tracking keep a part of that as an error. So a site takes back the change of its own message, and adds the
/// mean change of all: the mean stays what it is, and all inputs have moved alike.
#[derive(Default)]
pub(super) struct Messages {
    /// The sum of what was taken back and added, `[columns]`; over all sites it is zero.
    added: Vec<f64>,
}

impl Messages {
    /// The message of the next iteration, with these penalties.
    pub(super) async fn next(
        &mut self,
        collectives: &Collectives,
        site: &mut Site,
        steering: Steering,
    ) -> Result<Vec<f64>, SolveError> {
        let before = site.message();
        let is_new = steering != site.steering();
        site.steer(steering).map_err(SolveError::Robust)?;
        let mut message = site.message();
        self.added.resize(message.len(), 0.0);
        if is_new && collectives.tracks() {
            let own: Vec<f64> = message.iter().zip(&before).map(|(after, before)| after - before).collect();
            let sites = collectives.communication.schedule.nodes() as f64;
            let all = collectives.total(&own).await?;
            for ((added, own), all) in self.added.iter_mut().zip(&own).zip(&all) {
                *added += all / sites - own;
            }
        }
        message.iter_mut().zip(&self.added).for_each(|(value, added)| *value += added);
        Ok(message)
    }
}
