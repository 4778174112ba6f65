//! The effect of each fault on a swarm.

use std::collections::BTreeSet;

use super::{Lie, SimulatedSwarm};
use crate::input::Input;
use crate::schedule::NodeId;
use crate::sim::error::SimError;
use crate::sim::fault::Fault;
use crate::sim::misconduct::Misconduct;
use crate::sim::plans::MembersChange;
use crate::sim::trace::Entry;

impl SimulatedSwarm {
    pub(super) fn inflict(&mut self, fault: Fault) -> Result<(), SimError> {
        self.trace.record(self.now, NodeId(0), Entry::Faulted, format!("{fault:?}").as_bytes());
        match fault {
            Fault::Crash(id) => self.crash(id),
            Fault::Restart(id) if !self.nodes.contains_key(&id) && !self.gone.contains(&id) => {
                self.make(id, None)?;
                self.connect(id)
            }
            Fault::Restart(_) => Ok(()),
            Fault::Pause(id, span) => {
                self.paused_until.insert(id, self.now + span);
                self.set_alarm(id);
                Ok(())
            }
            Fault::FillDisk(_)
            | Fault::FreeDisk(_)
            | Fault::SlowDisk(..)
            | Fault::BackUpDisk(_)
            | Fault::RestoreDisk(_)
            | Fault::WipeDisk(_)
            | Fault::FlipBit(..)
            | Fault::TruncateSlot(..)
            | Fault::LoseSectors(..) => {
                self.harm_disk(fault);
                Ok(())
            }
            Fault::Replan(seed) => self.replan(MembersChange::Draw { seed, without: BTreeSet::new() }),
            Fault::Resize(members, seed) => self.replan(MembersChange::Resize { members, seed }),
            Fault::Leave(id) => self.leave(id),
            Fault::DismissRemoved => self.dismiss_removed(),
            Fault::Stop(id) => self.input(id, Input::Stop, Entry::Faulted, &[]),
            Fault::LinkDown(a, b) => {
                self.network.cut(a, b);
                self.input(a, Input::LinkDown { peer: b }, Entry::Faulted, &[])?;
                self.input(b, Input::LinkDown { peer: a }, Entry::Faulted, &[])
            }
            Fault::FailSync(id) => {
                self.disks.entry(id).or_default().fails_sync = true;
                Ok(())
            }
            Fault::Corrupt(id) => {
                self.corrupt(id);
                Ok(())
            }
            Fault::Besiege(id, attack) => self.besiege(id, attack),
            Fault::Expel(id, seed) => self.expel(id, seed),
            Fault::Mute(from, to) => {
                self.network.mute(from, to);
                Ok(())
            }
            Fault::LinkUp(a, b) => {
                self.network.mend(a, b);
                if self.network.unmute(a, b) {
                    self.break_stream(a, b)?;
                }
                self.link_up(a, b)
            }
        }
    }

    /// Lets a member send anything from now on.
    fn corrupt(&mut self, id: NodeId) {
        self.hostile.insert(id, Lie::Anything);
        self.give_up(self.plans.newest().generation);
    }

    /// Plans without a member, and without all that lie.
    fn expel(&mut self, id: NodeId, seed: u64) -> Result<(), SimError> {
        let liars = self.hostile.keys().copied();
        self.replan(MembersChange::Draw { seed, without: liars.chain([id]).collect() })
    }

    /// Lets a member attack from now on. It starts again with what it needs for that, and all it had.
    fn besiege(&mut self, id: NodeId, attack: Misconduct) -> Result<(), SimError> {
        self.hostile.insert(id, Lie::Within(attack));
        if attack.makes_up_weight() {
            self.give_up(self.plans.newest().generation);
        }
        self.crash(id)?;
        self.make(id, None)?;
        self.connect(id)
    }

    /// The attack of a member, if it attacks inside the bounds.
    pub(super) fn attack_of(&self, id: NodeId) -> Option<Misconduct> {
        match self.hostile.get(&id) {
            Some(Lie::Within(attack)) => Some(*attack),
            _ => None,
        }
    }
}
