//! The capacities of the network under a plan, and the duration of a period on it.
//!
//! Every link has a round-trip time, a bandwidth and a loss, nodes may have limits of their own, and a payload has a
//! size. On a point-to-point medium all links of a step send at once and share the capacities of their nodes by max-min
//! fairness (Bertsekas and Gallager, "Data networks", 1992, section 6.5.2): rates grow together, and a link stops
//! growing when its own bandwidth, its sender's upload or its receiver's download is used up. A step lasts until its
//! last payload has arrived. On a broadcast medium a slot lasts until its slowest receiver has the payload.

use serde::{Deserialize, Serialize};

use crate::{
    medium::Medium,
    step::{MixingStep, WeightedLink},
    topology::Topology,
};

/// The measurements of one directed link.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredLink {
    /// The sender.
    pub from: u32,
    /// The receiver.
    pub to: u32,
    /// Round-trip time in milliseconds.
    pub rtt_ms: f64,
    /// Bandwidth in 10^6 bits per second.
    pub mbit_s: f64,
    /// The fraction of packets that are lost, and sent again.
    pub loss: f64,
}

/// The capacities of a network, and the size of its payloads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkCapacity {
    /// The size of one payload.
    pub payload_bytes: u64,
    /// Both directions of every edge of the base graph, ordered by sender, then receiver.
    pub links: Vec<MeasuredLink>,
    /// The most each node can send, in 10^6 bits per second; none without a limit.
    pub upload_mbit_s: Vec<Option<f64>>,
    /// The most each node can receive, in 10^6 bits per second; none without a limit.
    pub download_mbit_s: Vec<Option<f64>>,
}

/// A link, and the time that its payload takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlowLink {
    /// The sender.
    pub from: usize,
    /// The receiver.
    pub to: usize,
    /// Time from the start of its step or slot to the arrival of the payload.
    pub seconds: f64,
}

/// The reason why a network does not fit a base graph.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum NetworkCapacityError {
    /// A link out of order, twice, missing, or not of the base graph.
    #[error(
        "network.links: entry {index} should be the link from {from} to {to}: one for each direction of each edge, ascending"
    )]
    Links {
        /// The index of the first wrong entry.
        index: usize,
        /// The sender that belongs there.
        from: usize,
        /// The receiver that belongs there.
        to: usize,
    },
    /// A list with too many or too few entries.
    #[error("network.{field} has {found} entries: it needs {expected}")]
    Length { field: &'static str, found: usize, expected: usize },
    /// A number out of range.
    #[error("the {what} of {of} is {value}: it must be {must}")]
    Number {
        /// The quantity.
        what: &'static str,
        /// The link or node it belongs to.
        of: String,
        /// The value found.
        value: String,
        /// The values allowed.
        must: &'static str,
    },
}

impl NetworkCapacity {
    /// Checks that the network is that of a base graph, and its numbers are in range.
    pub(crate) fn check(&self, base: &Topology) -> Result<(), NetworkCapacityError> {
        let nodes = base.node_count();
        for (field, found) in
            [("upload_mbit_s", self.upload_mbit_s.len()), ("download_mbit_s", self.download_mbit_s.len())]
        {
            if found != nodes {
                return Err(NetworkCapacityError::Length { field, found, expected: nodes });
            }
        }
        let expected = 2 * base.edges().len();
        if self.links.len() != expected {
            return Err(NetworkCapacityError::Length { field: "links", found: self.links.len(), expected });
        }
        let pairs = (0..nodes).flat_map(|from| base.neighbors(from).iter().map(move |&to| (from, to)));
        for (index, ((from, to), link)) in pairs.zip(&self.links).enumerate() {
            if (link.from as usize, link.to as usize) != (from, to) {
                return Err(NetworkCapacityError::Links { index, from, to });
            }
            link.check(|| format!("the link from {} to {}", base.names()[from], base.names()[to]))?;
        }
        for (what, limits) in [("upload", &self.upload_mbit_s), ("download", &self.download_mbit_s)] {
            for (limit, name) in limits.iter().zip(base.names()) {
                limit.map_or(Ok(()), |limit| check_rate(what, limit, || format!("node {name}")))?;
            }
        }
        Ok(())
    }

    fn link(&self, from: usize, to: usize) -> Option<&MeasuredLink> {
        let key = |link: &MeasuredLink| (link.from as usize, link.to as usize);
        self.links.binary_search_by_key(&(from, to), key).ok().map(|at| &self.links[at])
    }

    /// The rate at which a node can send and receive: the lower of its two limits, and of the means of its links.
    pub(crate) fn rate_of(&self, node: usize) -> f64 {
        let mean = |is_of: &dyn Fn(&MeasuredLink) -> bool| {
            let rates: Vec<f64> = self.links.iter().filter(|link| is_of(link)).map(|link| link.mbit_s).collect();
            rates.iter().sum::<f64>() / rates.len().max(1) as f64
        };
        let sends = mean(&|link| link.from as usize == node).min(self.upload_mbit_s[node].unwrap_or(f64::INFINITY));
        let receives = mean(&|link| link.to as usize == node).min(self.download_mbit_s[node].unwrap_or(f64::INFINITY));
        sends.min(receives)
    }

    /// The time that each payload of a step takes, in the order of its links.
    ///
    /// O(links) times the number of different bottlenecks.
    #[must_use]
    pub fn arrivals(&self, step: &MixingStep, medium: Medium) -> Vec<SlowLink> {
        self.arrivals_of(step, medium, self.payload_bytes as f64)
    }

    /// The time that each payload of a step takes where it has so many bytes.
    fn arrivals_of(&self, step: &MixingStep, medium: Medium, payload_bytes: f64) -> Vec<SlowLink> {
        let links = step.links();
        let caps: Vec<f64> =
            links.iter().map(|link| self.link(link.from, link.to).map_or(0.0, |link| link.mbit_s)).collect();
        let rates = match medium {
            Medium::PointToPoint => self.fair_rates(links, &caps),
            // One transmission serves all receivers: it is not shared.
            Medium::Broadcast => {
                let upload = |link: &WeightedLink| self.upload_mbit_s[link.from].unwrap_or(f64::INFINITY);
                links.iter().zip(&caps).map(|(link, &cap)| cap.min(upload(link))).collect()
            }
        };
        let arrival = |(link, rate): (&WeightedLink, f64)| {
            let known = self.link(link.from, link.to);
            let (rtt_ms, loss) = known.map_or((0.0, 0.0), |known| (known.rtt_ms, known.loss));
            let bits = 8.0 * payload_bytes / (1.0 - loss);
            SlowLink { from: link.from, to: link.to, seconds: rtt_ms / 2_000.0 + bits / (rate * 1e6) }
        };
        links.iter().zip(rates).map(arrival).collect()
    }

    /// The seconds that a period takes: its steps one after the other, on a broadcast medium slot by slot.
    #[must_use]
    pub fn seconds_per_period(&self, steps: &[MixingStep], medium: Medium) -> f64 {
        self.seconds(steps, medium, 1.0)
    }

    /// The seconds that these steps take with payloads of a share of their usual bytes.
    #[must_use]
    pub fn seconds(&self, steps: &[MixingStep], medium: Medium, payload_share: f64) -> f64 {
        let payload_bytes = payload_share * self.payload_bytes as f64;
        let latest =
            |arrivals: &mut dyn Iterator<Item = &SlowLink>| arrivals.map(|link| link.seconds).fold(0.0, f64::max);
        let of_step = |step: &MixingStep| {
            let arrivals = self.arrivals_of(step, medium, payload_bytes);
            match medium {
                Medium::PointToPoint => latest(&mut arrivals.iter()),
                Medium::Broadcast => {
                    let slot = |slot: &Vec<crate::Link>| {
                        latest(&mut slot.iter().filter_map(|&link| step.position(link)).map(|at| &arrivals[at]))
                    };
                    step.slots().iter().map(slot).sum()
                }
            }
        };
        steps.iter().map(of_step).sum()
    }

    /// The link whose payload takes longest in a period, the first among equals.
    #[must_use]
    pub fn slowest_link(&self, steps: &[MixingStep], medium: Medium) -> Option<SlowLink> {
        let arrivals = steps.iter().flat_map(|step| self.arrivals(step, medium));
        arrivals.reduce(|slowest, link| if link.seconds > slowest.seconds { link } else { slowest })
    }

    /// Max-min fair rates of links that all send at once.
    fn fair_rates(&self, links: &[WeightedLink], caps: &[f64]) -> Vec<f64> {
        let nodes = self.upload_mbit_s.len();
        // The first `nodes` resources are uploads, the others downloads.
        let limits = self.upload_mbit_s.iter().chain(&self.download_mbit_s);
        let mut left: Vec<f64> = limits.map(|limit| limit.unwrap_or(f64::INFINITY)).collect();
        let mut users = vec![0_usize; 2 * nodes];
        let resources = |link: &WeightedLink| [link.from, nodes + link.to];
        links.iter().flat_map(resources).for_each(|resource| users[resource] += 1);
        let mut rates = vec![0.0; links.len()];
        let mut open: Vec<usize> = (0..links.len()).collect();
        while !open.is_empty() {
            let share = |resource: usize| left[resource] / users[resource] as f64;
            let reach = |&at: &usize| resources(&links[at]).map(share).into_iter().fold(caps[at], f64::min);
            let level = open.iter().map(reach).fold(f64::INFINITY, f64::min);
            let (full, rest): (Vec<usize>, Vec<usize>) =
                open.iter().partition(|&at| reach(at) <= level * (1.0 + 1e-12));
            for at in full {
                rates[at] = level;
                for resource in resources(&links[at]) {
                    left[resource] = (left[resource] - level).max(0.0);
                    users[resource] -= 1;
                }
            }
            open = rest;
        }
        rates
    }
}

impl MeasuredLink {
    /// Checks the numbers; `of` names the link.
    pub(crate) fn check(&self, of: impl Fn() -> String) -> Result<(), NetworkCapacityError> {
        let number = |what, value: f64, must, fits: bool| {
            let wrong = || NetworkCapacityError::Number { what, of: of(), value: value.to_string(), must };
            if fits { Ok(()) } else { Err(wrong()) }
        };
        let rtt_ms = self.rtt_ms;
        let loss = self.loss;
        number("round-trip time", rtt_ms, "milliseconds from 0 to 10^6", (0.0..=1e6).contains(&rtt_ms))?;
        number("loss", loss, "a fraction from 0 to 0.99", (0.0..=0.99).contains(&loss))?;
        check_rate("bandwidth", self.mbit_s, of)
    }
}

/// Checks a rate in 10^6 bits per second.
pub(crate) fn check_rate(what: &'static str, rate: f64, of: impl Fn() -> String) -> Result<(), NetworkCapacityError> {
    if (1e-6..=1e9).contains(&rate) {
        return Ok(());
    }
    Err(NetworkCapacityError::Number { what, of: of(), value: rate.to_string(), must: "Mbit/s from 10^-6 to 10^9" })
}
