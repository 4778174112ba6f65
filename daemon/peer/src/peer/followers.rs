//! Followers of a peer: served from its start, given models at ends of rounds, and the last one at its end.

use std::collections::BTreeMap;
use std::sync::Arc;

use mingle_net::transport::Network;

use super::{Peer, Purpose};
use crate::driver::Finished;
use crate::error::Result;
use crate::follow::serving::{Followers, RoundModel};
use crate::membership::MembershipService;
use crate::stop::StopRequests;

impl Peer {
    /// Begins to answer followers; those of a peer that trains no model are told so.
    pub(super) fn serve_followers(&self, network: &Network, service: &Arc<MembershipService>) -> Result<Followers> {
        let followers = Followers::serve(network.streams.clone(), Arc::clone(service), self.options.followers)?;
        if !matches!(self.purpose, Purpose::Train(_)) {
            followers.have_no_model();
        }
        Ok(followers)
    }
}

/// Gives followers the last model of this peer, or sends them to other members where its training is not done.
/// The owner's request to stop ends the wait for them.
pub(super) async fn see_off(
    finished: &Finished,
    parameters: &Arc<[f32]>,
    last_round: u64,
    metadata: BTreeMap<String, String>,
    stop: &mut StopRequests,
) {
    let followers = &finished.followers;
    let farewell = async {
        if finished.rounds < last_round {
            return followers.leave().await;
        }
        let model = Arc::clone(parameters);
        followers.end_with(RoundModel { round: finished.rounds, last_round, model, metadata }).await;
    };
    tokio::select! {
        () = farewell => {}
        reason = stop.next() => tracing::debug!(reason, "followers are not waited for"),
    }
}
