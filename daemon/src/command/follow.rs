//! `mingle follow`: the model of a swarm in a file, while it is trained.

mod hook;
mod output;

use std::pin::pin;

use libp2p::identity::Keypair;
use mingle_net::printable::one_line;
use mingle_peer::follow::following::{FollowOptions, Followed, FollowedModel, Follower};
use mingle_peer::home::HomeLock;
use mingle_peer::membership::Membership;
use mingle_peer::{Error, ErrorKind, Home, Identity, Result, units};
use serde_json::json;

use super::join;
use crate::cli::FollowArgs;
use crate::signals::StopSignals;
use crate::{event_loop, out};
use hook::{Hook, HookEnd};
use output::FollowedFile;

/// Follows until the training is over, or the user stops it.
pub(super) fn execute(arguments: &FollowArgs, json: bool) -> Result {
    let ticket = join::ticket(&arguments.ticket)?;
    let own = OwnKey::of(arguments)?;
    let file = FollowedFile::open(&path(arguments))?;
    let options =
        FollowOptions { precision: arguments.precision, every: arguments.every, patience: arguments.timeout };
    event_loop::run(async {
        let signals = StopSignals::listen(arguments.stop_with_stdin)?;
        let mut follower = Follower::start(&own.key, &ticket, options).await?;
        let before = file.before();
        before.into_iter().for_each(|before| follower.go_on_from(before));
        let hook = Hook::new(arguments.exec.clone());
        let mut following = Following { file, hook, signals, once: arguments.once, json };
        let ended = following.run(&mut follower).await;
        follower.close().await;
        ended
    })
}

fn path(arguments: &FollowArgs) -> std::path::PathBuf {
    match (&arguments.output, &arguments.home) {
        (Some(output), _) => output.clone(),
        (None, Some(home)) => home.join("model.safetensors"),
        (None, None) => "model.safetensors".into(),
    }
}

/// The key of a follower. A home is locked: two processes with one key would be taken for one.
struct OwnKey {
    key: Keypair,
    _lock: Option<HomeLock>,
}

impl OwnKey {
    fn of(arguments: &FollowArgs) -> Result<Self> {
        let Some(root) = &arguments.home else {
            return Ok(Self { key: Keypair::generate_ed25519(), _lock: None });
        };
        let home = Home::create(Some(root))?;
        if Membership::of(&home)?.is_some() || home.holds_work() {
            let message = format!("{} is the home of a peer that trains, and its model is not to be replaced", root.display());
            return Err(Error::new(ErrorKind::BadInput, message).hint("name another folder, or only a file: --output FILE"));
        }
        let lock = home.lock()?;
        let key = Identity::load_or_create(&home.identity())?.keypair().clone();
        Ok(Self { key, _lock: Some(lock) })
    }
}

/// A follower with all that it feeds.
struct Following {
    file: FollowedFile,
    hook: Hook,
    signals: StopSignals,
    once: bool,
    json: bool,
}

/// The next thing to do.
enum Next {
    Followed(Followed),
    Stopped(&'static str),
}

impl Following {
    async fn run(&mut self, follower: &mut Follower) -> Result {
        loop {
            let followed = match self.next(follower).await? {
                Next::Followed(followed) => followed,
                Next::Stopped(reason) => {
                    self.tell(&json!({ "event": "stopped", "reason": reason }), &format!("stopped    {reason}"));
                    return Ok(());
                }
            };
            if let Some(last) = self.take_in(followed).await? {
                return self.end(&last).await;
            }
        }
    }

    /// Waits for the next event of the follower, and reports hooks that end meanwhile.
    async fn next(&mut self, follower: &mut Follower) -> Result<Next> {
        let mut following = pin!(follower.next());
        loop {
            let ended = tokio::select! {
                followed = &mut following => return Ok(Next::Followed(followed?)),
                reason = self.signals.next() => return Ok(Next::Stopped(reason)),
                ended = self.hook.ends() => ended,
            };
            self.tell_hook(&ended);
        }
    }

    /// Handles an event. Returns the model after which to end.
    async fn take_in(&mut self, followed: Followed) -> Result<Option<FollowedModel>> {
        match followed {
            Followed::Welcome { peer, task } => {
                self.file.check_task(&task)?;
                let words = format!("following  {peer}, which trains {}", one_line(&task));
                self.tell(&json!({ "event": "following", "peer": peer.to_string(), "task": task }), &words);
                Ok(None)
            }
            Followed::Lost { peer, reason } => {
                let words = format!("lost       {peer}: {reason}; another member is tried");
                self.tell(&json!({ "event": "lost", "peer": peer.to_string(), "reason": reason }), &words);
                Ok(None)
            }
            Followed::Unfit { peer, reason } => {
                let words = format!("unfit      {peer}: {reason}; the whole model is asked for");
                self.tell(&json!({ "event": "unfit", "peer": peer.to_string(), "reason": reason }), &words);
                Ok(None)
            }
            Followed::Model(model) => {
                self.file.write(&model.file).await?;
                self.tell_model(&model);
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
                reason = self.signals.next() => {
                    return Err(Error::new(ErrorKind::Forced, format!("{reason} before the command after the last model had ended")));
                }
            };
            self.tell_hook(&ended);
        }
        let words = if last.is_final { "done       this is the final model" } else { "done" };
        self.tell(&json!({ "event": "done", "round": last.round, "final": last.is_final }), words);
        Ok(())
    }

    fn tell_model(&self, model: &FollowedModel) {
        let FollowedModel { file, round, last_round, is_final, is_patch, received_bytes, peer } = model;
        let path = self.file.path();
        let line = json!({
            "event": "model",
            "round": round,
            "rounds": last_round,
            "final": is_final,
            "file": path,
            "bytes": file.bytes().len(),
            "received_bytes": received_bytes,
            "patch": is_patch,
            "blake3": blake3::Hash::from_bytes(file.digest()).to_hex().as_str(),
            "peer": peer.to_string(),
        });
        let form = if *is_patch { "a patch" } else { "a whole file" };
        let received = units::megabytes(*received_bytes);
        let words = format!("model      round {round} of {last_round}, {form} of {received:.3} MB, in {}", path.display());
        self.tell(&line, &words);
    }

    fn tell_hook(&self, ended: &HookEnd) {
        let HookEnd { round, failure } = ended;
        let words = match failure {
            None => format!("exec       done for round {round}"),
            Some(failure) => format!("warning    the command after round {round} failed: {failure}"),
        };
        self.tell(&json!({ "event": "exec", "round": round, "failure": failure }), &words);
    }

    fn tell(&self, line: &serde_json::Value, words: &str) {
        if self.json { out::line(line) } else { out::remark(words) }
    }
}
