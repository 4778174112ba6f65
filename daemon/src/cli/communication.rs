//! Arguments about the communication of peers, shared by the commands that train.

use clap::Args;
use mingle_net::multicast::{AirRate, PayloadMedium, SlotChoice};
use mingle_protocol::{CodecChoice, MomentumAcrossRounds, Robust, TrainingOverlap};

/// Encoding and mixing of models, of `run`, `demo` and `simulate`.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct CommunicationArgs {
    /// Encoding of the models that peers send: auto, which is int4 in plans with exact averages and f32 in all others,
    /// or f32, bf16, f16, int8, int4, int3; each peer reads all of them
    #[arg(long, default_value_t = CodecChoice::Auto, value_name = "CODEC")]
    pub(crate) codec: CodecChoice,
    /// Treatment of models that are far from a peer's own: off takes them as they are, clip moves them to the distance that is usual (docs/robust.md)
    #[arg(long, default_value_t = Robust::Off, value_name = "off|clip")]
    pub(crate) robust: Robust,
    /// Momentum over the mixed model from round to round, the same for all peers: off, auto, or a number, at most what the plan bears (docs/communication.md)
    #[arg(long, default_value_t = MomentumAcrossRounds::Off, value_name = "off|auto|G")]
    pub(crate) momentum_across_rounds: MomentumAcrossRounds,
    /// Train the next round while one is mixed, where each averages exactly, the same for all peers: off or on (docs/communication.md)
    #[arg(long, default_value_t = TrainingOverlap::Off, value_name = "off|on")]
    pub(crate) overlap: TrainingOverlap,
}

impl CommunicationArgs {
    /// The names of these options.
    pub(crate) const NAMES: [&str; 4] = ["codec", "robust", "momentum_across_rounds", "overlap"];
}

/// The medium of payloads, of `run` and `demo`.
#[derive(Args, Clone, Debug)]
pub(crate) struct MediumArgs {
    /// The medium of models: unicast on the stream of each link, or once for all neighbours that hear it by multicast, multicast%INTERFACE, multicast:GROUP:PORT or multicast:GROUP:PORT%INTERFACE (docs/broadcast.md) [default interface of a demo: loopback]
    #[arg(long, default_value_t = PayloadMedium::Unicast, value_name = "MEDIUM")]
    pub(crate) medium: PayloadMedium,
    /// Rate of multicast of each peer, such as 20mbit [default: adapts to what neighbours lose]
    #[arg(long, value_name = "RATE")]
    pub(crate) air_rate: Option<AirRate>,
    /// Send payloads in the slots of a plan for a shared channel: on, off, or auto, which does so where --air-rate is given
    #[arg(long, default_value_t = SlotChoice::Auto, value_name = "on|off|auto")]
    pub(crate) slots: SlotChoice,
}

impl MediumArgs {
    /// The names of these options.
    pub(crate) const NAMES: [&str; 3] = ["medium", "air_rate", "slots"];
}
