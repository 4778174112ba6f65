//! The progress of the nodes through the steps of a plan.

use mingle_planner::Plan;

/// A payload of a link of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StepLink {
    pub(super) step: usize,
    pub(super) from: usize,
    pub(super) to: usize,
}

/// The payloads that each node still waits for: a node takes up the next step when it has all of the present one.
#[derive(Debug)]
pub(super) struct StepProgress {
    /// The receivers of each node, by step.
    receivers: Vec<Vec<Vec<usize>>>,
    /// The number of payloads that each node lacks, by step.
    lacking: Vec<Vec<usize>>,
    /// The present step of each node that has begun.
    at: Vec<Option<usize>>,
    missing: usize,
}

impl StepProgress {
    pub(super) fn new(plan: &Plan) -> Self {
        let nodes = plan.node_count();
        let mut receivers = Vec::new();
        let mut lacking = Vec::new();
        let mut missing = 0;
        for step in plan.steps() {
            let to = |node: usize| step.links_from(node).iter().map(|link| link.to).collect();
            receivers.push((0..nodes).map(to).collect());
            let mut into = vec![0; nodes];
            step.links().iter().for_each(|link| into[link.to] += 1);
            lacking.push(into);
            missing += step.links().len();
        }
        Self { receivers, lacking, at: vec![None; nodes], missing }
    }

    pub(super) fn receivers(&self, step: usize, node: usize) -> &[usize] {
        &self.receivers[step][node]
    }

    pub(super) const fn missing(&self) -> usize {
        self.missing
    }

    /// Lets a node begin; returns the steps that it takes up at once.
    pub(super) fn begin(&mut self, node: usize) -> Vec<usize> {
        if self.lacking.is_empty() || self.at[node].is_some() {
            return Vec::new();
        }
        self.at[node] = Some(0);
        let mut taken_up = vec![0];
        taken_up.extend(self.go_on(node));
        taken_up
    }

    /// Takes note of a payload that has arrived; returns the steps that its receiver takes up.
    pub(super) fn arrive(&mut self, link: StepLink) -> Vec<usize> {
        self.lacking[link.step][link.to] -= 1;
        self.missing -= 1;
        self.go_on(link.to)
    }

    fn go_on(&mut self, node: usize) -> Vec<usize> {
        let mut taken_up = Vec::new();
        while let Some(step) =
            self.at[node].filter(|&step| step + 1 < self.lacking.len() && self.lacking[step][node] == 0)
        {
            self.at[node] = Some(step + 1);
            taken_up.push(step + 1);
        }
        taken_up
    }
}
