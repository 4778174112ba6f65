//! The side of a follower: it finds members by a ticket, follows one of them, and goes on at another when that one goes.

mod candidates;
mod session;

use std::sync::Arc;
use std::time::Duration;

use libp2p::PeerId;
use libp2p::identity::Keypair;
use libp2p_metrics::Registry;
use mingle_home::error::{Error, ErrorKind, Result};
use mingle_membership::{Claim, Ticket};
use mingle_net::transport::{Network, NetworkEvent, NetworkOptions};
use mingle_patch::ModelBytes;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::messages::{Ask, Precision, Refusal, Update};
use candidates::Candidates;
use session::{Answer, Session, SessionError};

/// Settings of a follower.
#[derive(Clone, Copy, Debug)]
pub struct FollowOptions {
    /// The numbers of the model.
    pub precision: Precision,
    /// Rounds between two models.
    pub every: u32,
    /// Time without any member that serves this follower, after which it gives up.
    pub patience: Duration,
}

impl Default for FollowOptions {
    fn default() -> Self {
        Self { precision: Precision::F32, every: 1, patience: Duration::from_secs(60) }
    }
}

/// A model that a follower has got and checked.
#[derive(Clone, Debug)]
pub struct FollowedModel {
    /// The model file, to the bit as its member would write it.
    pub file: Arc<ModelBytes>,
    /// Rounds over at this model.
    pub round: u64,
    /// Rounds over when training is done.
    pub last_round: u64,
    /// Set for the model with which the training of the member ended: no other follows.
    pub is_final: bool,
    /// Set if it came as patches on the model before.
    pub is_patch: bool,
    /// Bytes in which it came.
    pub received_bytes: u64,
    /// The member that it is from.
    pub peer: PeerId,
}

/// The next event of a follower.
#[derive(Clone, Debug)]
pub enum Followed {
    /// A member serves this follower, and trains this task.
    Welcome {
        /// The member.
        peer: PeerId,
        /// Its task, in one line.
        task: String,
    },
    /// A new model.
    Model(FollowedModel),
    /// The patches of a member did not fit; the whole model is asked for.
    Unfit {
        /// The member.
        peer: PeerId,
        /// The reason.
        reason: String,
    },
    /// The member that was followed has gone, or serves this follower no longer; another one is tried.
    Lost {
        /// The member.
        peer: PeerId,
        /// The reason.
        reason: String,
    },
}

/// A follower.
pub struct Follower {
    network: Network,
    events: mpsc::Receiver<NetworkEvent>,
    swarm: [u8; 32],
    claim: Claim,
    options: FollowOptions,
    candidates: Candidates,
    session: Option<Session>,
    have: Option<Arc<ModelBytes>>,
    after: Option<u64>,
    /// The task of the first member that told it.
    task: Option<String>,
    /// Time at which a member last answered.
    heard_at: Instant,
}

impl Follower {
    /// Begins to look for members at the addresses of the ticket. The key is that of the follower.
    ///
    /// # Errors
    /// The key cannot sign, or the network cannot be started.
    pub async fn start(key: &Keypair, ticket: &Ticket, options: FollowOptions) -> Result<Self> {
        let claim = ticket.invite.claim(&ticket.swarm, &key.public().to_peer_id())?;
        if ticket.bootstrap.is_empty() {
            return Err(Error::new(ErrorKind::BadInput, "this ticket names no address of a member")
                .hint("ask for another: mingle invite --address ADDR"));
        }
        let (network, events) = Network::start(key, &NetworkOptions::default(), &mut Registry::default()).await?;
        network.bootstrap(ticket.bootstrap.clone()).await;
        Ok(Self {
            network,
            events,
            swarm: ticket.swarm.id(),
            claim,
            options,
            candidates: Candidates::new(&ticket.bootstrap),
            session: None,
            have: None,
            after: None,
            task: None,
            heard_at: Instant::now(),
        })
    }

    /// Goes on from this model file, of an earlier run of the follower: a member that still has it sends a patch.
    pub fn go_on_from(&mut self, file: ModelBytes) {
        self.have = Some(Arc::new(file));
    }

    /// Waits for the next event.
    ///
    /// # Errors
    /// All members that answer refuse this follower, one trains another task than the first, or none served it for as
    /// long as the options say.
    pub async fn next(&mut self) -> Result<Followed> {
        loop {
            match self.session.take() {
                None => self.find_member().await?,
                Some(mut session) => {
                    let ask = self.ask();
                    match session.exchange(&ask, self.have.as_ref()).await {
                        Ok(answer) => {
                            self.heard_at = Instant::now();
                            if let Some(followed) = self.take_in(answer, session)? {
                                return Ok(followed);
                            }
                        }
                        Err(failure) => {
                            if let Some(followed) = self.give_up(&session, failure) {
                                return Ok(followed);
                            }
                        }
                    }
                }
            }
        }
    }

    /// Closes the connections.
    pub async fn close(self) {
        self.network.close().await;
    }

    fn ask(&self) -> Ask {
        Ask {
            swarm: self.swarm,
            claim: self.claim.clone(),
            precision: self.options.precision,
            every: self.options.every,
            have: self.have.as_ref().map(|file| file.digest()),
            after: self.after,
        }
    }

    fn take_in(&mut self, answer: Answer, session: Session) -> Result<Option<Followed>> {
        let peer = session.peer();
        match answer {
            Answer::Waiting => {
                self.session = Some(session);
                Ok(None)
            }
            Answer::Welcome { task, members } => {
                self.candidates.learn(members);
                self.session = Some(session);
                let first = self.task.get_or_insert_with(|| task.clone());
                if *first != task {
                    let message = format!("peer {peer} trains {task}, and the swarm trained {first} before");
                    return Err(Error::new(ErrorKind::Refused, message)
                        .hint("follow it into another file: mingle follow TICKET --output FILE"));
                }
                Ok(Some(Followed::Welcome { peer, task }))
            }
            Answer::Model { update, file, is_patch, received_bytes } => {
                // The model of a member that fell back is news as well.
                self.after = Some(update.round);
                self.have = Some(Arc::clone(&file));
                if !update.is_final {
                    self.session = Some(session);
                }
                let Update { round, last_round, is_final, .. } = update;
                Ok(Some(Followed::Model(FollowedModel {
                    file,
                    round,
                    last_round,
                    is_final,
                    is_patch,
                    received_bytes,
                    peer,
                })))
            }
        }
    }

    /// Notes the end of a session. Returns what a user must know of it.
    fn give_up(&mut self, session: &Session, failure: SessionError) -> Option<Followed> {
        let peer = session.peer();
        match failure {
            SessionError::Unfit(reason) if self.have.take().is_some() => {
                // The stream is at an unknown place: the whole model comes over another one.
                self.candidates.retry_soon(peer);
                Some(Followed::Unfit { peer, reason })
            }
            SessionError::Unfit(reason) => {
                self.candidates.refused(peer, &reason);
                Some(Followed::Lost { peer, reason })
            }
            SessionError::Refused(Refusal::Full(most)) => {
                self.candidates.retry_later(peer);
                let reason = Refusal::Full(most).to_string();
                self.candidates.failed(peer, &reason);
                Some(Followed::Lost { peer, reason })
            }
            SessionError::Refused(refusal) => {
                self.candidates.refused(peer, &refusal.to_string());
                Some(Followed::Lost { peer, reason: refusal.to_string() })
            }
            SessionError::Gone(reason) => {
                self.candidates.retry_later(peer);
                Some(Followed::Lost { peer, reason })
            }
        }
    }

    /// Opens a session with the next candidate, or waits for one.
    async fn find_member(&mut self) -> Result {
        while let Ok(event) = self.events.try_recv() {
            self.candidates.note(event);
        }
        let now = Instant::now();
        if let Some((peer, addresses)) = self.candidates.next(now) {
            match Session::open(&self.network, peer, addresses).await {
                Ok(session) => self.session = Some(session),
                Err(SessionError::Refused(refusal)) => self.candidates.refused(peer, &refusal.to_string()),
                Err(SessionError::Unfit(reason)) => self.candidates.refused(peer, &reason),
                Err(SessionError::Gone(reason)) => self.candidates.failed(peer, &reason),
            }
            return Ok(());
        }
        if let Some(refusal) = self.candidates.refusal_of_all(now) {
            return Err(Error::new(ErrorKind::Refused, refusal).hint(
                "ask the operator for a ticket that counts: mingle invite; docs/following.md says who serves followers",
            ));
        }
        let ends = self.heard_at + self.options.patience;
        if now >= ends {
            return Err(self.candidates.nobody(self.options.patience, self.after));
        }
        let pause = self.candidates.next_at().map_or(ends, |at| at.min(ends));
        tokio::select! {
            event = self.events.recv() => if let Some(event) = event { self.candidates.note(event) },
            () = tokio::time::sleep_until(pause) => {}
        }
        Ok(())
    }
}
