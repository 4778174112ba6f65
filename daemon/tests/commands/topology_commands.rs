//! `mingle topology`: the properties of a topology, and the formats it is written in.

use std::fs;

use crate::support::{assert_fails, run, stderr, stdout, text};
use serde_json::Value;

#[test]
fn a_topology_is_described_with_what_would_split_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("huts.edges");
    fs::write(&file, "ana ben\nben cho\ncho ana\ncho dan\n").unwrap();
    let shown = stdout(&run(&["topology", "show", text(&file)]));
    for line in ["nodes      4", "edges      4", "diameter   2", "bridges    1: cho - dan", "cut nodes  1: cho"] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    let object: Value = serde_json::from_str(&stdout(&run(&["topology", "show", text(&file), "--json"]))).unwrap();
    assert_eq!(object["schema"], "mingle.topology/1");
    assert_eq!((&object["diameter"], &object["max_degree"]), (&2.into(), &3.into()));
    assert_eq!(object["bridges"], serde_json::json!([["cho", "dan"]]));
    assert_eq!(object["cut_nodes"], serde_json::json!(["cho"]));
}

/// The edge list of [`a_topology_is_read_gzipped_and_in_utf_16_too`], gzipped.
const GZIPPED: &[u8] = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x33\x50\x30\xe4\x32\x54\x30\xe2\x32\x52\x30\xe0\x02\x00\x7b\x61\x5b\x23\x0c\x00\x00\x00";

#[test]
fn a_topology_is_read_gzipped_and_in_utf_16_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("triangle");
    let list = "0 1\n1 2\n2 0\n";
    let utf_16 = [0xfeff].into_iter().chain(list.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    for bytes in [list.as_bytes().to_vec(), [b"\xef\xbb\xbf", list.as_bytes()].concat(), utf_16, GZIPPED.to_vec()] {
        fs::write(&file, &bytes).unwrap();
        let shown = run(&["topology", "show", text(&file)]);
        assert!(stdout(&shown).contains("edges      3"), "{bytes:x?}: {}", stderr(&shown));
    }
    fs::write(&file, b"PK\x03\x04 a workbook").unwrap();
    assert_fails(&run(&["topology", "show", text(&file)]), 4, &["cannot read the topology", "no text"]);
    // Latin-1: the line at fault and what to do, and nothing about generators.
    fs::write(&file, b"ana ben\nben J\xfcrg\n").unwrap();
    let latin = run(&["topology", "show", text(&file)]);
    assert_fails(&latin, 4, &["line 2: it is no text in UTF-8", "save the file as UTF-8"]);
    assert!(!stderr(&latin).contains("generator"), "{}", stderr(&latin));
}

#[test]
fn what_a_foreign_topology_holds_beyond_nodes_and_edges_is_said_to_be_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("zoo.gml");
    let graph = "graph [ node [ id 0 label \"Bonn\" Longitude 7 Latitude 50 ] node [ id 1 label \"None\" ]\n\
                edge [ source 0 target 1 LinkSpeed \"10\" ] ]\n";
    fs::write(&file, graph).unwrap();
    let shown = run(&["topology", "show", text(&file)]);
    assert!(stdout(&shown).starts_with("format     GML\nnodes      2"), "{}", stdout(&shown));
    let said = stderr(&shown);
    for part in ["not used   LinkSpeed (1 edge)", "--links", "1 of 2 nodes have a label", "positions  1 of 2 nodes"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let object: Value = serde_json::from_str(&stdout(&run(&["topology", "show", text(&file), "--json"]))).unwrap();
    assert_eq!((&object["format"], &object["positions"]), (&"GML".into(), &true.into()));
    let generated: Value = serde_json::from_str(&stdout(&run(&["topology", "show", "ring:n=3", "--json"]))).unwrap();
    assert_eq!(generated["format"], Value::Null);
}

#[test]
fn a_topology_keeps_its_nodes_and_edges_through_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let generated = run(&["topology", "generate", "rg:n=15,r=0.5,seed=2", "-o", text(&path("0.json"))]);
    assert!(generated.status.success(), "{}", stderr(&generated));
    let mut last = path("0.json");
    for name in ["1.graphml", "2.edges", "3.json"] {
        let converted = run(&["topology", "convert", text(&last), "-o", text(&path(name))]);
        assert!(converted.status.success(), "{}", stderr(&converted));
        last = path(name);
    }
    let shape = |file: &str| {
        let shown: Value =
            serde_json::from_str(&stdout(&run(&["topology", "show", text(&path(file)), "--json"]))).unwrap();
        (shown["nodes"].clone(), shown["edges"].clone(), shown["diameter"].clone())
    };
    assert_eq!(shape("0.json"), shape("3.json"));
    let dot = run(&["topology", "convert", text(&last), "-o", text(&path("4.dot")), "--json"]);
    let told: Value = serde_json::from_str(&stdout(&dot)).unwrap();
    assert_eq!((&told["schema"], &told["nodes"]), (&"mingle.topology-file/1".into(), &15.into()));
    assert!(fs::read_to_string(path("4.dot")).unwrap().starts_with("graph "));
}

#[test]
fn what_a_format_cannot_hold_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let edges = folder.path().join("x.edges");
    let output = run(&["topology", "generate", "rg:n=8,r=0.7,seed=1", "-o", text(&edges)]);
    assert!(output.status.success() && stderr(&output).contains("left out   the positions"), "{}", stderr(&output));
    let named = folder.path().join("named.json");
    fs::write(&named, r#"{"nodes": ["ward 7", "ward 8"], "edges": [["ward 7", "ward 8"]]}"#).unwrap();
    assert_fails(&run(&["topology", "convert", text(&named), "-o", text(&edges)]), 4, &["ward 7", "GraphML"]);
}

#[test]
fn a_generated_topology_has_positions_where_it_is_geometric_and_goes_to_stdout_without_a_file() {
    let printed: Value = serde_json::from_str(&stdout(&run(&["topology", "generate", "rg:n=6,r=0.9,seed=1"]))).unwrap();
    assert_eq!(printed["positions"].as_array().unwrap().len(), 6);
    let ring: Value = serde_json::from_str(&stdout(&run(&["topology", "generate", "ring:n=6"]))).unwrap();
    assert_eq!((ring["edges"].as_array().unwrap().len(), ring.get("positions")), (6, None));
}

#[test]
fn topologies_that_are_none_are_refused_with_what_is_possible() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("split.edges");
    fs::write(&file, "a b\nc d\n").unwrap();
    let output = folder.path().join("x.json");
    assert_fails(&run(&["topology", "show", text(&file)]), 4, &["2 parts", "{a, b}"]);
    assert_fails(&run(&["topology", "show", "gone.json"]), 4, &["gone.json", "hint"]);
    assert_fails(&run(&["topology", "convert", text(&file), "-o", text(&output)]), 4, &["2 parts"]);
    assert_fails(&run(&["topology", "generate", "torus:n=3", "-o", text(&output)]), 4, &["torus", "grid"]);
    assert_fails(&run(&["topology", "generate", "gone.json"]), 4, &["gone.json"]);
    let unknown = run(&["topology", "convert", "ring:n=4", "-o", text(&folder.path().join("x.png"))]);
    assert_fails(&unknown, 4, &["x.png", ".json", ".graphml", ".edges", ".dot"]);
    assert!(!output.exists() && !folder.path().join("x.png").exists());
}
