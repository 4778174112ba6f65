//! Plans that change, members that come and go.

use std::sync::Arc;

use super::{Happening, SimulatedSwarm};
use crate::input::{Input, NewGeneration};
use crate::message::Generation;
use crate::node::Node;
use crate::schedule::NodeId;
use crate::sim::error::SimError;
use crate::sim::keys::SimulatedKeys;
use crate::sim::plans::MembersChange;
use crate::sim::trace::Entry;

/// The largest pace of nodes that have nothing to train and no neighbour to wait for.
const MOST_STEPS_PER_MICROSECOND: u64 = 4_096;

impl SimulatedSwarm {
    pub(super) fn replan(&mut self, change: MembersChange) -> Result<(), SimError> {
        // A planner that made a plan no node can follow is not what is tested here.
        if self.plans.replan(change).is_err() {
            return Ok(());
        }
        let members = self.plans.newest().members.clone();
        for id in members {
            if self.gone.remove(&id) && !self.nodes.contains_key(&id) {
                self.leavers.remove(&id);
                // It comes back as a stranger, with nothing.
                self.conservation.died(id);
                self.disks.entry(id).or_default().give_up();
                let donated = self.donated(id);
                self.make(id, donated)?;
                self.connect(id)?;
            }
        }
        self.tell_someone()
    }

    /// Hands the newest plan to the first member that is there; the others learn of it from each other.
    pub(super) fn tell_someone(&mut self) -> Result<(), SimError> {
        let plan = self.plans.newest();
        let generation = plan.generation;
        match plan.members.iter().copied().find(|id| self.nodes.contains_key(id)) {
            Some(id) => self.hand_in_plan(id, generation),
            None => Ok(()),
        }
    }

    pub(super) fn fetch_plan(&mut self, id: NodeId, generation: Generation) {
        let process = self.processes.get(&id).copied().unwrap_or(0);
        let at = self.now + self.network.draw_between(self.config.network.delay);
        self.agenda.add(at, Happening::PlanFetched { id, process, generation });
    }

    pub(super) fn hand_in_plan(&mut self, id: NodeId, generation: Generation) -> Result<(), SimError> {
        let (Some(plan), Some(node)) = (self.plans.of(generation), self.nodes.get(&id)) else {
            return Ok(());
        };
        if !generation.replaces(&node.config().generation) {
            return Ok(());
        }
        if !plan.members.contains(&id) {
            return self.dismiss(id);
        }
        let schedule = Arc::clone(&plan.schedule);
        let rounds = self.config.rounds;
        let ratio = if node.is_fresh() { None } else { self.donated(id) };
        let keys = Arc::new(SimulatedKeys::of(id));
        let new = NewGeneration { generation, schedule, id, keys, rounds, ratio };
        self.drained.insert(id, false);
        self.input(id, Input::Enter(Box::new(new)), Entry::Replanned, &generation.plan_hash)?;
        self.connect(id)
    }

    /// Ends a process that a plan leaves out. Where only that plan did, and the newest names the node again, it starts
    /// again with the newest, as if its operator had seen to it.
    fn dismiss(&mut self, id: NodeId) -> Result<(), SimError> {
        self.end(id)?;
        let newest = self.plans.newest();
        if !newest.members.contains(&id) {
            return Ok(());
        }
        let generation = newest.generation;
        self.gone.remove(&id);
        self.make(id, None)?;
        self.connect(id)?;
        self.hand_in_plan(id, generation)
    }

    /// The ratio of the member that is furthest, for one that has fallen behind or is new; its own if it is alone.
    pub(super) fn donated(&mut self, to: NodeId) -> Option<Vec<f32>> {
        let is_donor = |(id, node): &(&NodeId, &mut Node)| **id != to && node.is_fresh();
        let furthest = self
            .nodes
            .iter_mut()
            .filter(is_donor)
            .max_by_key(|(id, node)| (node.config().generation.counter, node.step(), std::cmp::Reverse(**id)));
        let donor = furthest.map(|(id, _)| *id).unwrap_or(to);
        self.nodes.get_mut(&donor).map(|node| node.ratio().to_vec())
    }

    pub(super) fn leave(&mut self, id: NodeId) -> Result<(), SimError> {
        self.leavers.insert(id);
        self.input(id, Input::Leave, Entry::Faulted, &[])
    }

    /// Ends the processes of nodes that were removed, and hands the newest plan to a member again, in case that all
    /// that knew of it have lost their disks.
    pub(super) fn dismiss_removed(&mut self) -> Result<(), SimError> {
        let plan = self.plans.newest();
        let removed: Vec<NodeId> = self.nodes.keys().filter(|id| !plan.members.contains(id)).copied().collect();
        removed.into_iter().try_for_each(|id| self.end(id))?;
        self.tell_someone()
    }

    /// Checks that a node that skips steps goes no further than is possible.
    pub(super) fn check_jump(&self, id: NodeId, to: u64) -> Result<(), SimError> {
        let now = self.now;
        let hostile = !self.hostile.is_empty();
        if hostile && to > MOST_STEPS_PER_MICROSECOND * (now.micros() + 1) {
            return Err(SimError::Misled { now, id, to });
        }
        Ok(())
    }

    /// Checks that a node that has left holds no mass.
    pub(super) fn check_leaver(&self, id: NodeId) -> Result<(), SimError> {
        match self.nodes.get(&id).filter(|node| node.has_left() && !node.mass().is_zero()) {
            Some(node) => Err(SimError::LeftWithMass { now: self.now, id, mass: node.mass() }),
            None => Ok(()),
        }
    }

    /// Ends a process that is not needed any more.
    pub(super) fn end(&mut self, id: NodeId) -> Result<(), SimError> {
        self.gone.insert(id);
        if !self.plans.newest().members.contains(&id) {
            self.learning.left_out(id);
        }
        let killed = self.crashes;
        self.crash(id)?;
        self.crashes = killed;
        Ok(())
    }
}
