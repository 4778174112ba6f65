//! Journals: the same one gives the same run, another one gives another, and none from a stranger does harm.

use mingle_protocol::sim::{Fault, Journal, MOST_FAULTS, Profile, TraceEntry};
use mingle_protocol::{NodeId, Time};
use serde_json::{Value, json};

fn good() -> Journal {
    Journal::record(Profile::Kill, 7, None).0
}

/// The journal of a good run with one thing changed, read again.
fn with(change: impl FnOnce(&mut Value)) -> Result<Journal, String> {
    let mut text = serde_json::to_value(good()).unwrap();
    change(&mut text);
    serde_json::from_value(text).map_err(|error| error.to_string())
}

#[test]
fn a_journal_that_was_written_and_read_replays_to_the_same_digest() {
    for profile in Profile::ALL {
        let (journal, outcome) = Journal::record(profile, 1, None);
        let text = serde_json::to_string(&journal).unwrap();
        let read: Journal = serde_json::from_str(&text).unwrap();
        assert_eq!(read, journal);
        let replayed = read.replay();
        assert_eq!(replayed, outcome, "{profile}");
        assert!(read.agrees_with(&replayed), "{profile}");
    }
}

#[test]
fn one_changed_fault_gives_another_digest() {
    let journal = good();
    let (faults, repair, stop) = (journal.faults().to_vec(), journal.repair(), journal.stop());
    let middle = faults.len() / 2;
    let mut fewer = faults.clone();
    fewer.remove(middle);
    let mut later = faults.clone();
    later[middle].0 = Time(later[middle].0.micros() + 1);
    let mut other = faults.clone();
    other[middle].1 = Fault::Pause(NodeId(0), std::time::Duration::from_millis(5));
    let same = journal.with(faults, repair, stop).0;
    assert_eq!(same, journal);
    for changed in [fewer, later, other] {
        let (changed, outcome) = journal.with(changed, repair, stop);
        assert_eq!(outcome.failure, None);
        assert_ne!(changed.digest(), journal.digest());
        assert!(!journal.agrees_with(&outcome));
    }
}

#[test]
fn a_journal_is_text_that_a_person_can_read() {
    let text = serde_json::to_value(good()).unwrap();
    assert_eq!(text["schema"], "mingle.fault-journal/3");
    assert_eq!((&text["profile"], &text["seed"], &text["failure"]), (&json!("kill"), &json!(7), &Value::Null));
    let faults = text["faults"].as_array().unwrap();
    assert!(faults.iter().all(|fault| fault["at_us"].is_u64() && fault.as_object().unwrap().len() == 2), "{faults:?}");
    assert!(faults.iter().any(|fault| fault["crash"].is_u64()));
    let pause = with(|text| text["faults"] = json!([{ "at_us": 5, "pause_us": [2, 1_500] }])).unwrap();
    assert_eq!(pause.faults(), [(Time(5), Fault::Pause(NodeId(2), std::time::Duration::from_micros(1_500)))]);
}

#[test]
fn what_could_not_have_been_recorded_is_refused_and_named() {
    let refused = |words: &str, change: &dyn Fn(&mut Value)| {
        let error = with(change).unwrap_err();
        assert!(error.contains(words), "{error}");
    };
    for other in ["mingle.fault-journal/1", "mingle.fault-journal/9"] {
        refused(other, &|text| text["schema"] = json!(other));
    }
    refused("fault 0 is about node 99", &|text| text["faults"] = json!([{ "at_us": 1, "crash": 99 }]));
    refused("fault 1 at 0.000001 s", &|text| {
        text["faults"] = json!([{ "at_us": 2, "crash": 0 }, { "at_us": 1, "restart": 0 }]);
    });
    refused("after the repair", &|text| text["faults"] = json!([{ "at_us": u64::MAX, "crash": 0 }]));
    refused("within a week", &|text| text["stop_us"] = json!(u64::MAX));
    refused("in this order", &|text| text["repair_us"] = json!(u64::MAX));
    refused("stands still", &|text| text["faults"] = json!([{ "at_us": 1, "pause_us": [0, u64::MAX] }]));
    refused("takes 2000000 times as long", &|text| {
        text["faults"] = json!([{ "at_us": 1, "slow_disk": [0, 2_000_000] }]);
    });
    refused("64 hexadecimal digits", &|text| text["digest"] = json!("0f"));
    refused("another release", &|text| text["nodes"] = json!(3_000));
    refused("unknown field `colour`", &|text| text["colour"] = json!("red"));
    refused("unknown variant `storm`", &|text| text["profile"] = json!("storm"));
    let many = vec![json!({ "at_us": 1, "crash": 0 }); MOST_FAULTS + 1];
    refused("50001 faults are more than the 50000", &|text| text["faults"] = json!(many));
    assert!(with(|text| text["faults"] = json!([{ "at_us": 1, "earthquake": 0 }])).is_err());
}

#[test]
fn a_journal_gives_its_trace_log_in_order() {
    let (outcome, log) = good().trace();
    assert!(good().agrees_with(&outcome));
    assert!(log.is_sorted_by_key(|(at, _)| *at));
    let faults = log.iter().filter(|(_, entry)| matches!(entry, TraceEntry::Fault(_))).count();
    assert_eq!(faults, good().faults().len());
    assert!(log.iter().any(|(_, entry)| matches!(entry, TraceEntry::Event(..))));
}
