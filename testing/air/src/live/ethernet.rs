//! The addressee of an Ethernet frame.

use crate::frame::Recipient;

/// The shortest frame: two addresses and a type.
const HEADER_BYTES: usize = 14;

/// The beginning of the addresses of all interfaces: locally administered, for one station.
const PREFIX: [u8; 4] = [0x02, 0x6d, 0x67, 0x00];

/// The address of a node's interface.
pub(super) fn station_address(number: usize) -> [u8; 6] {
    // A node's number is far below 65,536.
    let [.., high, low] = (number as u64).to_be_bytes();
    [PREFIX[0], PREFIX[1], PREFIX[2], PREFIX[3], high, low]
}

/// The address as text, `02:6d:67:00:00:01`.
pub(super) fn station_text(number: usize) -> String {
    station_address(number).map(|byte| format!("{byte:02x}")).join(":")
}

/// The addressee of a frame; a frame to a station that is no node occupies the air like one to all. `None` for what is no
/// frame.
pub(super) fn recipient(frame: &[u8], nodes: usize) -> Option<Recipient> {
    let address: [u8; 6] = frame.get(..HEADER_BYTES)?.first_chunk().copied()?;
    let number = usize::from(u16::from_be_bytes([address[4], address[5]]));
    let is_node = address[..4] == PREFIX && number < nodes;
    Some(if is_node { Recipient::One(number) } else { Recipient::All })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(to: [u8; 6]) -> Vec<u8> {
        [&to[..], &[0; 8], b"content"].concat()
    }

    #[test]
    fn frames_go_to_one_node_or_to_all() {
        assert_eq!(recipient(&frame(station_address(3)), 4), Some(Recipient::One(3)));
        assert_eq!(recipient(&frame(station_address(4)), 4), Some(Recipient::All));
        assert_eq!(recipient(&frame([0xff; 6]), 4), Some(Recipient::All));
        assert_eq!(recipient(&frame([0x01, 0, 0x5e, 0, 0, 1]), 4), Some(Recipient::All));
        assert_eq!(recipient(&[0xff; 13], 4), None);
        assert_eq!(station_text(258), "02:6d:67:00:01:02");
    }
}
