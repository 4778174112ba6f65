use proptest::prelude::*;

use crate::collective::*;
use crate::{Mass, NodeId};

const LIMITS: SizeLimits = SizeLimits { nodes: 9, dimension: 3 };

fn shares() -> impl Strategy<Value = Share> {
    let values = prop::collection::vec(-1e300..1e300, 3);
    (any::<u64>(), any::<u64>(), values).prop_map(|(round, mass, values)| {
        let mass = Mass::from_units(mass);
        Share { round, mass, values }
    })
}

fn flood_values() -> impl Strategy<Value = FloodValue> {
    let values = prop::collection::vec((-1e300..1e300, (0_u32..9).prop_map(NodeId)), 3);
    (any::<u64>(), values).prop_map(|(round, values)| FloodValue { round, values })
}

fn framed<M: std::fmt::Debug>(messages: impl Strategy<Value = M>) -> impl Strategy<Value = Frame<M>> {
    (any::<u64>(), proptest::option::of((1..u64::MAX, messages)))
        .prop_map(|(acknowledged, message)| Frame { acknowledged, message })
}

fn sequence_messages() -> impl Strategy<Value = SequenceMessage> {
    let exchange = prop::collection::vec(-1e300..1e300, 0..4)
        .prop_map(|values| OperationMessage::Exchange(ExchangeMessage { values: values.into() }));
    let partial = (any::<bool>(), prop::collection::vec(-1e300..1e300, 0..4))
        .prop_map(|(is_whole, values)| OperationMessage::Partial(Partial { is_whole, values }));
    let pull = (0_u32..9, prop::collection::vec(-1e300..1e300, 0..4)).prop_map(|(source, values)| {
        OperationMessage::Pull(PullMessage { source: NodeId(source), values: values.into() })
    });
    let modular = (any::<bool>(), prop::collection::vec(any::<u64>(), 0..4))
        .prop_map(|(is_whole, words)| OperationMessage::ModularPartial(ModularPartial { is_whole, words }));
    let payload = prop_oneof![
        shares().prop_map(OperationMessage::Share),
        flood_values().prop_map(OperationMessage::Extremum),
        exchange,
        partial,
        pull,
        modular
    ];
    (any::<u64>(), payload).prop_map(|(operation, payload)| SequenceMessage { operation, payload })
}

/// Checks that a message is decoded to what was encoded, and encoded to the same bytes again.
fn check_round_trip<M: MessageEncoding + PartialEq + std::fmt::Debug>(message: &M) -> Result<(), TestCaseError> {
    let bytes = message.encode();
    let decoded = M::decode(&bytes, &LIMITS);
    prop_assert_eq!(decoded.as_ref(), Ok(message));
    prop_assert_eq!(decoded.unwrap().encode(), bytes);
    Ok(())
}

fn check_cut<M: MessageEncoding + std::fmt::Debug>(message: &M) -> Result<(), TestCaseError> {
    let bytes = message.encode();
    for end in 0..bytes.len() {
        prop_assert!(M::decode(&bytes[..end], &LIMITS).is_err(), "cut at {}", end);
    }
    prop_assert!(M::decode(&[&bytes[..], &[0]].concat(), &LIMITS).is_err(), "a byte too many");
    Ok(())
}

proptest! {
    #[test]
    fn what_goes_in_comes_out(
        share in framed(shares()), best in framed(flood_values()), message in framed(sequence_messages()),
    ) {
        check_round_trip(&share)?;
        check_round_trip(&message)?;
        check_round_trip(&best)?;
    }

    #[test]
    fn vectors_that_are_cut_or_run_on_are_refused(share in shares(), best in flood_values()) {
        check_cut(&share)?;
        check_cut(&best)?;
    }

    #[test]
    fn arbitrary_bytes_are_refused_or_within_the_limits(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        if let Ok(share) = Share::decode(&bytes, &LIMITS) {
            prop_assert!(share.values.len() == 3 && share.values.iter().all(|value| value.is_finite()));
        }
        if let Ok(best) = FloodValue::decode(&bytes, &LIMITS) {
            prop_assert!(best.values.iter().all(|(value, owner)| value.is_finite() && owner.index() < 9));
        }
        if let Ok(SequenceMessage { payload: OperationMessage::Exchange(exchange), .. }) = SequenceMessage::decode(&bytes, &LIMITS) {
            prop_assert!(exchange.values.len() <= 3 && exchange.values.iter().all(|value| value.is_finite()));
        }
        if let Ok(pull) = PullMessage::decode(&bytes, &LIMITS) {
            prop_assert!(pull.source.index() < 9);
        }
        let _ = Frame::<SequenceMessage>::decode(&bytes, &LIMITS);
    }
}

#[test]
fn what_is_beyond_a_limit_is_named() {
    let share = |values: Vec<f64>| Share { round: 1, mass: Mass::ONE, values }.encode();
    assert_eq!(Share::decode(&share(vec![0.0; 4]), &LIMITS), Err(MessageError::Length { bytes: 32, expected: 24 }));
    let bad = share(vec![0.0, f64::NAN, 0.0]);
    assert_eq!(Share::decode(&bad, &LIMITS), Err(MessageError::NotFinite { index: 1 }));
    assert_eq!(Share::decode(&[0xff; 4], &LIMITS), Err(MessageError::Head));

    let unknown = MessageError::UnknownNode { id: NodeId(9), nodes: 9 };
    let pull = PullMessage { source: NodeId(9), values: [0.0; 3].into() }.encode();
    assert_eq!(PullMessage::decode(&pull, &LIMITS), Err(unknown.clone()));
    let best = FloodValue { round: 1, values: vec![(0.0, NodeId(9)); 3] }.encode();
    assert_eq!(FloodValue::decode(&best, &LIMITS), Err(unknown));

    // An acknowledgement with something behind it, and a message with the number 0.
    assert_eq!(Frame::<SequenceMessage>::decode(&[5, 0, 1], &LIMITS), Err(MessageError::Frame { bytes: 1 }));
    assert_eq!(Frame::<SequenceMessage>::decode(&[5, 1, 0], &LIMITS), Err(MessageError::Frame { bytes: 0 }));
}

#[test]
fn an_acknowledgement_of_what_was_never_sent_is_refused() {
    let plan = crate::Schedule::new(1, &[crate::Step { keep: vec![1.0], links: vec![] }], 0).unwrap();
    let mut channel = ReliableChannel::new(Extremum::new(&plan, NodeId(0), Extreme::Max, &[1.0], 1).unwrap());
    let frame = Frame { acknowledged: 1, message: None };
    assert_eq!(channel.handle(NodeId(0), frame), Err(CollectiveFault::ImpossibleAck));
}
