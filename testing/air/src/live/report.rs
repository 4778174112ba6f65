//! The report of an air in real time.

use std::net::Ipv4Addr;
use std::time::Duration;

use serde::Serialize;

use super::{carrier::Carried, lateness::Lateness};
use crate::{
    counts::{RadioCounts, seconds},
    settings::AirSettings,
};

/// The format of the report.
const SCHEMA: &str = "mingle.air/1";

/// A node of an air in real time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LiveNode {
    /// The name in the base graph.
    pub name: String,
    /// The network namespace.
    pub namespace: String,
    /// The address of its interface `air0`.
    pub address: Ipv4Addr,
    /// Its counts, at the end.
    pub counts: RadioCounts,
}

/// The counts of an air in real time, and how late its machine was.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LiveReport {
    /// The name and version of the format.
    pub schema: &'static str,
    /// The time that the air ran.
    #[serde(rename = "elapsed_s", serialize_with = "seconds")]
    pub elapsed: Duration,
    /// The rate of all radios, in bits per second.
    pub rate: u64,
    /// The time in which at least one node was sending.
    #[serde(rename = "busy_s", serialize_with = "seconds")]
    pub busy: Duration,
    /// The airtime of all nodes together.
    #[serde(rename = "airtime_s", serialize_with = "seconds")]
    pub airtime: Duration,
    /// The delay from the end of a reception on the air to its receiver's interface.
    pub delivery_late: Lateness,
    /// The delay from reading a frame to its place in the queue of its radio.
    pub intake_late: Lateness,
    /// Frames that an interface did not take, because its namespace was going.
    pub undeliverable: u64,
    /// The nodes.
    pub nodes: Vec<LiveNode>,
}

impl LiveReport {
    pub(super) fn new(mut nodes: Vec<LiveNode>, settings: &AirSettings, carried: Carried) -> Self {
        let airtime = carried.counts.iter().map(|counts| counts.airtime).sum();
        for (node, counts) in nodes.iter_mut().zip(carried.counts) {
            node.counts = counts;
        }
        Self {
            schema: SCHEMA,
            elapsed: carried.elapsed,
            rate: settings.rate,
            busy: carried.busy,
            airtime,
            delivery_late: carried.delivery_late,
            intake_late: carried.intake_late,
            undeliverable: carried.undeliverable,
            nodes,
        }
    }

    /// The report as JSON.
    ///
    /// # Errors
    ///
    /// None for a report that exists.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }

    /// A warning, where the machine was so late that times on the air mean little.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let frame = 1_500.0 * 8.0 / self.rate as f64;
        let late = self.delivery_late.p99_s.max(self.intake_late.p99_s);
        (late > frame).then(|| {
            format!(
                "99 of 100 frames came no better than within {:.1} ms, and a full frame takes {:.1} ms: the machine is \
                 too slow for this rate, give a lower --rate or fewer nodes",
                1e3 * late,
                1e3 * frame
            )
        })
    }
}
