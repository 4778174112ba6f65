//! Speed of messages between two ends on this machine, compared with the layers that carry them.
//!
//! `cargo run --release -p mingle-examples --example wire`
//!
//! Both ends are in this process, connected over the loopback interface. A message is timed from the moment its bytes
//! are ready until one small answer to it has come back. Three senders take turns, so that other load on the machine
//! affects all of them alike:
//!
//! - a plain TCP socket: bytes, and nothing done to them;
//! - a libp2p stream, with the smallest program that can open one: encrypted bytes;
//! - an edge of the plan, as a peer of a swarm has it: parcels, which are hashed by the sender, and whose every
//!   coordinate and hash the receiver checks.

mod edge;
mod exchange;
mod socket;
mod stream;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use libp2p::Multiaddr;
use mingle_home::error::Context;
use mingle_home::{ErrorKind, Result};
use serde_json::json;

use edge::EdgePair;
use socket::SocketPair;
use stream::StreamPair;

/// Turns before those that count, in which connections open their windows.
const WARM_UP: u32 = 2;
/// Bytes of a parameter on the wire, in the default codec.
const PARAMETER_BYTES: usize = 4;

/// Send messages from one end to the other of this machine, over plain TCP, libp2p alone, and Mingle, in turn.
#[derive(Debug, Parser)]
#[command(name = "wire")]
struct Arguments {
    /// Parameters of the model that is sent, four bytes each; may be given more than once
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        default_values_t = [1_663_370, 25_000_000],
        value_parser = clap::value_parser!(u32).range(1..=i64::from(u32::MAX >> 4))
    )]
    parameters: Vec<u32>,
    /// Messages of each size that each of them sends; medians are printed
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    turns: u32,
    /// Print one JSON object a row instead of a table
    #[arg(long)]
    json: bool,
}

/// The transport below libp2p.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transport {
    Tcp,
    Quic,
}

impl Transport {
    fn name(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Quic => "QUIC",
        }
    }

    /// Any free port of the loopback interface.
    fn address(self) -> Multiaddr {
        let loopback = Multiaddr::empty().with(std::net::Ipv4Addr::LOCALHOST.into());
        match self {
            Self::Tcp => loopback.with(libp2p::multiaddr::Protocol::Tcp(0)),
            Self::Quic => loopback.with(libp2p::multiaddr::Protocol::Udp(0)).with(libp2p::multiaddr::Protocol::QuicV1),
        }
    }
}

/// The times of all turns of one size and transport.
struct Row {
    transport: Transport,
    bytes: usize,
    turns: Vec<Turn>,
}

/// The times of one message over each of the three senders.
#[derive(Clone, Copy)]
struct Turn {
    socket: Duration,
    stream: Duration,
    edge: Duration,
}

/// Bytes as megabytes of 10^6 bytes.
#[allow(clippy::cast_precision_loss)] // for display
fn megabytes(bytes: usize) -> f64 {
    bytes as f64 / 1e6
}

fn main() -> ExitCode {
    match measure_all(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Measures every size over every transport, and prints a row each.
fn measure_all(arguments: &Arguments) -> Result {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context(ErrorKind::Unexpected, "cannot start the asynchronous runtime")?;
    if !arguments.json {
        println!("MB/s             MB     socket   libp2p   Mingle   libp2p:socket   Mingle:libp2p");
    }
    for &parameters in &arguments.parameters {
        for transport in [Transport::Tcp, Transport::Quic] {
            let row = runtime.block_on(measure(transport, parameters as usize, arguments.turns))?;
            println!("{}", if arguments.json { row.to_json() } else { row.to_text() });
        }
    }
    Ok(())
}

async fn measure(transport: Transport, parameters: usize, turns: u32) -> Result<Row> {
    let bytes = parameters * PARAMETER_BYTES;
    let mut socket = SocketPair::connect(bytes).await?;
    let mut stream = StreamPair::connect(transport, bytes).await?;
    let mut edge = EdgePair::connect(transport, parameters).await?;
    let mut row = Row { transport, bytes, turns: Vec::new() };
    for turn in 0..WARM_UP + turns {
        let took = Turn { socket: socket.send().await?, stream: stream.send().await?, edge: edge.send().await? };
        if turn >= WARM_UP {
            row.turns.push(took);
        }
    }
    Ok(row)
}

impl Row {
    /// Speeds of socket, stream and edge, by their median times, in megabytes a second.
    fn speeds(&self) -> [f64; 3] {
        let speed = |took: fn(&Turn) -> Duration| {
            let [_, seconds, _] = self.quartiles(|turn| took(turn).as_secs_f64());
            megabytes(self.bytes) / seconds
        };
        [speed(|turn| turn.socket), speed(|turn| turn.stream), speed(|turn| turn.edge)]
    }

    /// Speed of an edge relative to a stream, and of a stream relative to a socket: quartiles over the turns.
    fn ratios(&self) -> [[f64; 3]; 2] {
        let ratio = |mine: Duration, other: Duration| other.as_secs_f64() / mine.as_secs_f64();
        [self.quartiles(|turn| ratio(turn.edge, turn.stream)), self.quartiles(|turn| ratio(turn.stream, turn.socket))]
    }

    fn quartiles(&self, of: impl Fn(&Turn) -> f64) -> [f64; 3] {
        let mut values: Vec<f64> = self.turns.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        [1, 2, 3].map(|quarter| values[values.len() * quarter / 4])
    }

    fn to_text(&self) -> String {
        let ([socket, stream, edge], [[_, edge_ratio, _], [_, stream_ratio, _]]) = (self.speeds(), self.ratios());
        format!(
            "{:<4} {:>14.2} {socket:>10.0} {stream:>8.0} {edge:>8.0} {:>15.2} {:>15.2}",
            self.transport.name(),
            megabytes(self.bytes),
            stream_ratio,
            edge_ratio,
        )
    }

    fn to_json(&self) -> String {
        let ([socket, stream, edge], [edge_ratios, stream_ratios]) = (self.speeds(), self.ratios());
        json!({
            "schema": "mingle.bench-wire/1",
            "transport": self.transport.name().to_lowercase(),
            "bytes": self.bytes,
            "socket_mb_s": socket,
            "libp2p_mb_s": stream,
            "mingle_mb_s": edge,
            "libp2p_per_socket": stream_ratios,
            "mingle_per_libp2p": edge_ratios,
        })
        .to_string()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn messages_get_through_on_every_way() {
        for transport in [Transport::Tcp, Transport::Quic] {
            let row = measure(transport, 100_000, 3).await.unwrap();
            assert!(row.speeds().iter().all(|speed| speed.is_finite() && *speed > 0.0), "{}", row.to_json());
            assert_eq!(row.bytes, 400_000);
        }
    }
}
