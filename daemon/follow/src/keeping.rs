//! A follower that keeps the newest model in a file, and runs a command after each.

mod event;
mod file;
mod hook;

use std::path::{Path, PathBuf};
use std::pin::pin;

use libp2p::identity::Keypair;
use mingle_home::error::{Error, ErrorKind, Result};
use mingle_home::home::{Home, HomeLock};
use mingle_home::identity::Identity;
use mingle_membership::{Membership, Ticket};

use crate::following::{FollowOptions, Followed, FollowedModel, Follower};
pub use event::FollowerEvent;
use file::FollowedFile;
use hook::{Hook, HookEnd};

/// Settings of a follower that keeps a file.
#[derive(Clone, Debug, Default)]
pub struct KeepOptions {
    /// The file; `model.safetensors` in the home, or else in the present folder, unless given.
    pub output: Option<PathBuf>,
    /// The folder of the follower's key; a new key unless given.
    pub home: Option<PathBuf>,
    /// The task that is followed.
    pub follow: FollowOptions,
    /// The command after each new model, for the shell.
    pub command: Option<String>,
    /// `true` to end after the first model.
    pub once: bool,
}

/// Follows the swarm of a ticket until its training is over, or `stop` returns a reason.
///
/// # Errors
/// The file holds another model or cannot be written, the key cannot be used, or the follower ends
/// ([`Follower::next`]).
pub async fn keep(
    ticket: &Ticket,
    options: KeepOptions,
    stop: impl AsyncFnMut() -> &'static str,
    tell: impl FnMut(&FollowerEvent),
) -> Result {
    let own = FollowerKey::of(options.home.as_deref())?;
    let file = FollowedFile::open(&path(&options))?;
    let mut follower = Follower::start(&own.key, ticket, options.follow).await?;
    file.before().into_iter().for_each(|before| follower.go_on_from(before));
    let hook = Hook::new(options.command);
    let ended = Keeper { file, hook, once: options.once, stop, tell }.run(&mut follower).await;
    follower.close().await;
    ended
}

fn path(options: &KeepOptions) -> PathBuf {
    let usual = || options.home.clone().unwrap_or_default().join("model.safetensors");
    options.output.clone().unwrap_or_else(usual)
}

/// The key of a follower. A home is locked: two processes with one key would be taken for one.
struct FollowerKey {
    key: Keypair,
    _lock: Option<HomeLock>,
}

impl FollowerKey {
    fn of(root: Option<&Path>) -> Result<Self> {
        let Some(root) = root else {
            return Ok(Self { key: Keypair::generate_ed25519(), _lock: None });
        };
        let home = Home::create(Some(root))?;
        if Membership::of(&home)?.is_some() || home.holds_work() {
            let message =
                format!("{} is the home of a peer that trains, and its model is not to be replaced", root.display());
            return Err(
                Error::new(ErrorKind::BadInput, message).hint("name another folder, or only a file: --output FILE")
            );
        }
        let lock = home.lock()?;
        let key = Identity::load_or_create(&home.identity())?.keypair().clone();
        Ok(Self { key, _lock: Some(lock) })
    }
}

/// A follower with all that it feeds.
struct Keeper<Stop, Tell> {
    file: FollowedFile,
    hook: Hook,
    once: bool,
    stop: Stop,
    tell: Tell,
}

/// The next thing to do.
enum Next {
    Followed(Followed),
    Stopped(&'static str),
}

impl<Stop: AsyncFnMut() -> &'static str, Tell: FnMut(&FollowerEvent)> Keeper<Stop, Tell> {
    async fn run(&mut self, follower: &mut Follower) -> Result {
        loop {
            let followed = match self.next(follower).await? {
                Next::Followed(followed) => followed,
                Next::Stopped(reason) => {
                    (self.tell)(&FollowerEvent::Stopped { reason: reason.to_owned() });
                    return Ok(());
                }
            };
            if let Some(last) = self.take_in(followed).await? {
                return self.end(&last).await;
            }
        }
    }

    /// Waits for the next event of the follower, and reports commands that end meanwhile.
    async fn next(&mut self, follower: &mut Follower) -> Result<Next> {
        let mut following = pin!(follower.next());
        loop {
            let ended = tokio::select! {
                followed = &mut following => return Ok(Next::Followed(followed?)),
                reason = (self.stop)() => return Ok(Next::Stopped(reason)),
                ended = self.hook.ends() => ended,
            };
            self.tell_end(ended);
        }
    }

    /// Handles an event. Returns the model after which to end.
    async fn take_in(&mut self, followed: Followed) -> Result<Option<FollowedModel>> {
        match followed {
            Followed::Welcome { peer, task } => {
                self.file.check_task(&task)?;
                (self.tell)(&FollowerEvent::Following { peer: peer.to_string(), task });
                Ok(None)
            }
            Followed::Lost { peer, reason } => {
                (self.tell)(&FollowerEvent::Lost { peer: peer.to_string(), reason });
                Ok(None)
            }
            Followed::Unfit { peer, reason } => {
                (self.tell)(&FollowerEvent::Unfit { peer: peer.to_string(), reason });
                Ok(None)
            }
            Followed::Model(model) => {
                self.file.write(&model.file).await?;
                let event = self.described(&model);
                (self.tell)(&event);
                self.hook.start(self.file.path(), &model);
                Ok((model.is_final || self.once).then_some(model))
            }
        }
    }

    /// Waits for the command after the last model, unless the user stops it.
    async fn end(&mut self, last: &FollowedModel) -> Result {
        while self.hook.is_at_work() {
            let ended = tokio::select! {
                ended = self.hook.ends() => ended,
                reason = (self.stop)() => {
                    let message = format!("{reason} before the command after the last model had ended");
                    return Err(Error::new(ErrorKind::Forced, message));
                }
            };
            self.tell_end(ended);
        }
        (self.tell)(&FollowerEvent::Done { round: last.round, is_final: last.is_final });
        Ok(())
    }

    fn tell_end(&mut self, HookEnd { round, failure }: HookEnd) {
        (self.tell)(&FollowerEvent::Exec { round, failure });
    }

    fn described(&self, model: &FollowedModel) -> FollowerEvent {
        FollowerEvent::Model {
            round: model.round,
            rounds: model.last_round,
            is_final: model.is_final,
            file: self.file.path().to_path_buf(),
            bytes: model.file.bytes().len() as u64,
            received_bytes: model.received_bytes,
            patch: model.is_patch,
            blake3: blake3::Hash::from_bytes(model.file.digest()).to_hex().to_string(),
            peer: model.peer.to_string(),
        }
    }
}
