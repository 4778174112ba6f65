//! Payloads by multicast: one transmission for all receivers, without sockets and clocks.
//!
//! ```text
//!   sender                                                         each receiver
//!   Transmission  which symbol is next  --+                    +-->  ObjectStore  symbols of several senders
//!   Encoder       its bytes              |   UDP multicast   |         Assembly   one object
//!   SenderKey     sealed in a packet     +-------------------+       ObjectReception    what to say of it, and when
//!   Pacer         not too fast                                            |
//!   Rhythm        in this node's slots                                    |
//!        ^                                                                |
//!        +---------------  Word: got it, lack so many symbols  <----------+
//!                          (on the stream of each link)
//! ```
//!
//! An object is the payload of a parcel. It is cut into symbols that fit a packet, and these into blocks
//! ([`Geometry`]). A block of k symbols has k repair symbols besides, by a Reed-Solomon code over GF(2^16): any k of the
//! 2 k give the block. Symbols are sent in passes: first the object itself, then repair symbols, as many as the receiver
//! that lacks most of a block needs. They serve all receivers, whichever symbols each of them lost.
//!
//! Nothing here decides that bytes are right: the hash in the header of the parcel does. Time is an argument, so that
//! a simulator can use the same code.

mod assembly;
mod code;
mod encoder;
mod geometry;
mod medium;
mod pacing;
mod packet;
mod rate;
mod reception;
mod seal;
mod slots;
mod store;
mod transmission;
mod word;

pub use assembly::{Assembly, Placed};
pub use code::CodeError;
pub use encoder::Encoder;
pub use geometry::{Geometry, MAX_BLOCK_SYMBOLS, SymbolPlace};
pub use medium::{MediumError, MulticastOptions, PayloadMedium, SlotChoice, SlotChoiceError, group_of};
pub use pacing::{Pacer, RateControl};
pub use packet::{DEFAULT_PACKET_BYTES, PACKET_OVERHEAD, PacketHead, symbol_bytes};
pub use rate::{AirRate, AirRateError};
pub use reception::ObjectReception;
pub use seal::{SECRET_BYTES, SenderKey};
pub use slots::{BeaconOutcome, Pauses, Rhythm, SlotBeacon, SlotLength, SlotTable, SlotWindow, StepSlots};
pub use store::{ObjectStore, PacketMeaning, StoreCounts, StoreLimits};
pub use transmission::{MAX_PASSES, Transmission, TransmissionStep};
pub use word::{ObjectName, Word};
