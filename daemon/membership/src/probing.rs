//! Link measurements on request: permission to order them, permission to measure this peer, and their execution.

use libp2p::{Multiaddr, PeerId};
use mingle_home::error::{Context, Error, ErrorKind, Result};
use mingle_net::probe::{LinkMeasurement, ProbeToken, ProbedLink};

use crate::exchange;
use crate::requests::MemberAnswer;
use crate::service::MembershipService;
use crate::swarm::SwarmIdentity;
use crate::times::{beside_now, now_unix_s};

impl MembershipService {
    /// The peers that this one knows, itself first: the members of its plan, and the pending peers.
    pub fn known(&self) -> Vec<PeerId> {
        let state = self.state();
        let members = state.plan.iter().flat_map(|(_, members)| members.iter().filter_map(|peer| peer.parse().ok()));
        let mut known = vec![self.local];
        for peer in members.chain(state.pending_peers.waiting().iter().copied()) {
            if !known.contains(&peer) {
                known.push(peer);
            }
        }
        known
    }

    /// Checks that this peer may order measurements of the links of others.
    ///
    /// # Errors
    /// The reason why it may not.
    pub fn may_order_measurements(&self) -> Result {
        match self.signer() {
            Some(Err(_)) => Err(Error::new(
                ErrorKind::Refused,
                "only the operator of the swarm and its delegate can have the links of others measured",
            )),
            Some(Ok(signer)) => signer.check_time(),
            None => Ok(()),
        }
    }

    /// Measures the link from one peer to another: itself, or by an order to the peer at which the link begins.
    ///
    /// # Errors
    /// A peer cannot be reached or refuses, or this one has no right to order it.
    pub async fn measure(&self, from: PeerId, to: PeerId) -> Result<LinkMeasurement> {
        if from == self.local {
            return Ok(self.prober.measure(to, Vec::new(), self.token(from, to, &[])?).await?);
        }
        self.may_order_measurements()?;
        let mut streams = self.prober.reach(from, Vec::new()).await?;
        // The two may not know each other yet; this peer, which knows both, passes the address on.
        let addresses = if to == self.local { Vec::new() } else { self.prober.addresses(to).await };
        let token = self.token(from, to, &addresses)?;
        exchange::order_measurement(&mut streams, from, to, &addresses, token).await
    }

    /// A signed permission, if this peer is the operator or its delegate.
    fn token(&self, from: PeerId, to: PeerId, addresses: &[Multiaddr]) -> Result<Option<ProbeToken>> {
        let Some(Ok(signer)) = self.signer() else { return Ok(None) };
        let mut nonce = [0; 16];
        getrandom::fill(&mut nonce).context(ErrorKind::Unexpected, "the operating system gives no random numbers")?;
        let link = ProbedLink { swarm: &signer.swarm().id(), from, to };
        Ok(Some(ProbeToken::sign(&link, addresses, signer.key(), now_unix_s(), nonce)?))
    }

    /// Executes another peer's order.
    pub(crate) async fn measure_for(
        &self,
        asker: PeerId,
        to: &[u8],
        addresses: Vec<Multiaddr>,
        token: Option<ProbeToken>,
    ) -> MemberAnswer {
        let Ok(to) = PeerId::from_bytes(to) else { return MemberAnswer::No("that is no peer".to_owned()) };
        let may_order = match (self.swarm(), &token) {
            (Some(swarm), Some(token)) => token.names(&addresses) && self.permits(&swarm, token, self.local, to),
            (None, _) => self.is_member(&asker) && self.is_member(&to),
            (Some(_), None) => false,
        };
        if !may_order {
            return MemberAnswer::No("it does not let you order measurements".to_owned());
        }
        match self.prober.measure(to, addresses, token).await {
            Ok(measured) => MemberAnswer::Measured(measured),
            Err(failure) => MemberAnswer::No(format!("{failure:#}")),
        }
    }

    /// The reason why `peer` may not measure its link to this one; `None` if it may.
    pub fn objection_to_probe(&self, peer: PeerId, token: Option<&ProbeToken>) -> Option<String> {
        let has_token = || match (self.swarm(), token) {
            (Some(swarm), Some(token)) => self.permits(&swarm, token, peer, self.local),
            _ => false,
        };
        if self.is_member(&peer) || has_token() {
            return None;
        }
        let permission = token.map_or_else(
            || "has no permission from the operator".to_owned(),
            |token| format!("its permission does not hold, which ends {}", beside_now(token.expires_unix_s())),
        );
        Some(format!("it is not in our plan, and {permission}"))
    }

    /// Returns `true` if the swarm permits these two to measure their link now, for the first time with this token.
    fn permits(&self, swarm: &SwarmIdentity, token: &ProbeToken, from: PeerId, to: PeerId) -> bool {
        let now = now_unix_s();
        let link = ProbedLink { swarm: &swarm.id(), from, to };
        let is_signed = swarm.signing_keys().iter().any(|key| token.holds(&link, key, now));
        is_signed && self.state().spent.spend(token, now)
    }
}
