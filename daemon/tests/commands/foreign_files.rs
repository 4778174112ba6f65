//! Files as other programs write them, given to commands: what is found in them is said, and what cannot be used is
//! refused with the file, the line and a way out.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::support::pair::Pair;
use crate::support::{RunningPeer, assert_fails, mingle, read_json, run, stderr, stdout, text};

/// A folder of files of a test.
struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file, and returns its path as an argument.
    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        text(&path).to_owned()
    }

    /// Writes a table, and returns its name for `--data`.
    fn table(&self, bytes: impl AsRef<[u8]>) -> String {
        format!("csv:{}", self.write("t.csv", bytes))
    }

    /// The card and the remarks that `mingle data card` prints for a table.
    fn card(&self, bytes: impl AsRef<[u8]>) -> (Value, String) {
        let output = run(&["data", "card", "--data", &self.table(bytes)]);
        assert!(output.status.success(), "{}", stderr(&output));
        (serde_json::from_str(&stdout(&output)).unwrap(), stderr(&output))
    }

    /// Asserts that the commands that read tables refuse this one with these words, and with its name.
    #[track_caller]
    fn refuse_table(&self, bytes: &str, words: &[&str]) {
        let data = self.table(bytes);
        let simulate = ["simulate", "--topology", "ring:n=3", "--model", "softmax", "--rounds", "1"];
        for command in [&["data", "card"][..], &simulate, &["demo", "-o", text(&self.path("demo"))]] {
            let refused = run(&[command, &["--data", &data]].concat());
            assert_refused(&refused, &[&["t.csv"], words].concat());
        }
    }

    /// The data that three nodes report of a file of interactions, from `mingle solve`.
    fn interactions(&self, bytes: impl AsRef<[u8]>) -> Output {
        for node in 0..3 {
            self.write(&format!("node-{node}.txt"), &bytes);
        }
        let problem = "kind = \"recommendation\"\ndata = \"{node}.txt\"\nrounds = 1\nfrequencies = 2\nepochs = 1\n";
        let (problem, plan) = (self.write("problem.toml", problem), self.path("plan.json"));
        let made = run(&["plan", "make", "--topology", "complete:n=3", "--method", "nguyen-he", "-o", text(&plan)]);
        assert!(made.status.success(), "{}", stderr(&made));
        run(&["solve", "--problem", &problem, "--plan", text(&plan), "-o", text(&self.path("out"))])
    }

    /// Asserts that a file of interactions holds so many users, items and interactions, and that this is printed.
    #[track_caller]
    fn assert_interactions(&self, bytes: impl AsRef<[u8]>, counts: [usize; 3]) {
        let output = self.interactions(bytes);
        assert!(output.status.success(), "{}", stderr(&output));
        let [users, items, all] = counts;
        let found = format!("{users} users, {items} items, {all} interactions");
        assert_eq!(read_json(&self.path("out/learned.json"))[0]["found"], found);
        assert!(stdout(&output).contains(&format!("data of node-0: {found}")), "{}", stdout(&output));
    }
}

/// Asserts that a command refuses its input: one message, with these words, and the exit code of bad input.
#[track_caller]
fn assert_refused(output: &Output, words: &[&str]) {
    assert_fails(output, 4, words);
    let said = stderr(output);
    assert_eq!(said.lines().filter(|line| line.starts_with("error: ")).count(), 1, "{said}");
}

/// Twelve rows of two columns and a label.
fn rows(label: impl Fn(usize) -> String) -> String {
    (0..12).map(|row| format!("{}.5,{},{}\n", row * 5 % 12, row * 7 % 12, label(row))).collect()
}

fn utf_16(text: &str) -> Vec<u8> {
    [0xfeff].into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
}

fn crc_32(bytes: &[u8]) -> u32 {
    let bit = |crc: u32, _| if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), bit))
}

/// A gzip file of one stored block.
fn gzipped(text: &[u8]) -> Vec<u8> {
    let length = u16::try_from(text.len()).unwrap();
    let head =
        [&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1][..], &length.to_le_bytes(), &(!length).to_le_bytes()].concat();
    [&head, text, &crc_32(text).to_le_bytes(), &u32::from(length).to_le_bytes()].concat()
}

/// An archive of NumPy with stored arrays: name, type, shape, bytes.
fn npz(arrays: &[(&str, &str, &str, Vec<u8>)]) -> Vec<u8> {
    let (mut files, mut directory) = (Vec::new(), Vec::new());
    for (name, kind, shape, values) in arrays {
        let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n");
        let array =
            [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), values].concat();
        let (name, size) = (format!("{name}.npy"), array.len() as u32);
        let mut shared = vec![20, 0, 0, 0, 0, 0, 0, 0, 33, 0];
        [crc_32(&array), size, size].iter().for_each(|number| shared.extend(number.to_le_bytes()));
        shared.extend((name.len() as u16).to_le_bytes());
        let offset = files.len() as u32;
        files.extend([b"PK\x03\x04", &shared[..], &[0, 0], name.as_bytes(), &array].concat());
        directory
            .extend([b"PK\x01\x02\x14\x00", &shared[..], &[0; 12], &offset.to_le_bytes(), name.as_bytes()].concat());
    }
    let count = (arrays.len() as u16).to_le_bytes();
    let sizes = [directory.len() as u32, files.len() as u32].map(u32::to_le_bytes).concat();
    [&files[..], &directory, b"PK\x05\x06\0\0\0\0", &count, &count, &sizes, &[0, 0]].concat()
}

/// The bytes of a small number, as one kind of array has them.
type Encoding = fn(i64) -> Vec<u8>;

/// The findings of `mingle graph show` in a graph.
fn graph(data: &str) -> Value {
    let shown = run(&["graph", "show", "--json", "--data", data]);
    assert!(shown.status.success(), "{data}: {}", stderr(&shown));
    serde_json::from_str::<Value>(&stdout(&shown)).unwrap()["graph"].clone()
}

const FEATURES: &str = "1,0\n0,1\n1,1\n0.5,0\n";
const LABELS: &str = "0\n1\n1\n0\n";

#[test]
fn edges_of_a_graph_are_read_in_quotes_and_with_a_header_and_those_by_name_are_refused() {
    let files = Files::new();
    files.write("g/features.csv", FEATURES);
    files.write("g/labels.csv", LABELS);
    let data = text(&files.path("g")).to_owned();
    for edges in [
        "\"0\",\"1\"\n\"1\",\"2\"\n\"3\",\"2\"\n",
        "\"source\",\"target\"\n\"0\",\"1\"\n\"1\",\"2\"\n\"3\",\"2\"\n",
        "\"0\" \"1\"\n\"1\" \"2\"\n\"3\" \"2\"\n",
        "0 1 {}\n1 2 {}\n3 2 {}\n",
    ] {
        files.write("g/edges.csv", edges);
        assert_eq!((&graph(&data)["nodes"], &graph(&data)["edges"]), (&4.into(), &3.into()), "{edges}");
    }
    for (edges, words) in [
        (
            "\"from\",\"to\"\n\"ana\",\"ben\"\n",
            &["edges.csv, line 2", "\"ana\" is no number of a node", "number nodes from 0"][..],
        ),
        ("0,1\nben,cho\n", &["edges.csv, line 2", "\"ben\""]),
        ("from,to\n", &["edges.csv", "there is no edge in it"]),
        ("0,1\n1,9\n", &["edges.csv, line 2", "node 9 has no features"]),
    ] {
        files.write("g/edges.csv", edges);
        assert_refused(&run(&["graph", "show", "--data", &data]), words);
    }
}

#[test]
fn a_graph_is_read_gzipped_and_in_utf_16() {
    let files = Files::new();
    let edges = "0,1\n1,2\n3,2\n";
    for (name, forms) in [
        ("plain", [edges, FEATURES, LABELS].map(|part| part.as_bytes().to_vec())),
        ("utf16", [edges, FEATURES, LABELS].map(utf_16)),
        ("marked", [edges, FEATURES, LABELS].map(|part| format!("\u{feff}{part}").into_bytes())),
    ] {
        for (file, bytes) in ["edges", "features", "labels"].iter().zip(&forms) {
            files.write(&format!("{name}/{file}.csv"), bytes);
            files.write(&format!("{name}-gz/{file}.csv.gz"), gzipped(bytes));
        }
    }
    let expected = graph(text(&files.path("plain")));
    assert_eq!(
        (&expected["edges"], &expected["features"], &expected["classes"]),
        (&3.into(), &2.into(), &serde_json::json!([2, 2]))
    );
    for name in ["utf16", "marked", "plain-gz", "utf16-gz", "marked-gz"] {
        assert_eq!(graph(text(&files.path(name))), expected, "{name}");
    }
}

#[test]
fn a_topology_in_graphml_is_read_gzipped_and_in_utf_16() {
    let files = Files::new();
    let graph = "<graphml><graph edgedefault=\"undirected\"><node id=\"Köln\"/><node id=\"Bonn\"/><node id=\"Aachen\"/>\
                 <edge source=\"Köln\" target=\"Bonn\"/><edge source=\"Bonn\" target=\"Aachen\"/></graph></graphml>\n";
    let of = |encoding: &str| format!("<?xml version=\"1.0\" encoding=\"{encoding}\"?>\n{graph}");
    for (form, bytes) in [
        ("UTF-8", of("UTF-8").into_bytes()),
        ("UTF-16", utf_16(&of("UTF-16"))),
        ("gzip", gzipped(of("UTF-8").as_bytes())),
        ("UTF-16 in gzip", gzipped(&utf_16(&of("utf-16")))),
        ("a mark", format!("\u{feff}{}", of("utf-8")).into_bytes()),
    ] {
        let file = files.write("zoo.graphml", bytes);
        let shown = run(&["topology", "show", &file]);
        let told = stdout(&shown);
        assert!(told.contains("GraphML") && told.contains("edges      2"), "{form}: {told}{}", stderr(&shown));
        assert!(told.contains("cut nodes  1: Bonn"), "{form}: {told}");
    }
}

#[test]
fn interactions_are_read_as_lists_tables_and_in_every_encoding_and_are_refused_where_they_can_be_two_things() {
    let files = Files::new();
    let lists: String = (0..30).map(|user| format!("{user} {} {}\n", user + 7, user + 40)).collect();
    files.assert_interactions(&lists, [30, 60, 60]);
    let of_three = |user: usize| format!("{user} {} {} {}\n", user * 31 % 40, user * 11 % 40 + 40, user * 3 % 40 + 80);
    files.assert_interactions((0..40).map(of_three).collect::<String>(), [40, 120, 120]);

    let head = "userId,movieId,rating,timestamp\n";
    let movies: String = (0..12).map(|at| format!("{},\"Film {}, The\",4.0,96498{at}\n", at % 4, at % 5)).collect();
    let table = format!("{head}{movies}");
    for bytes in
        [table.clone().into_bytes(), format!("\u{feff}{table}").into_bytes(), utf_16(&table), gzipped(table.as_bytes())]
    {
        files.assert_interactions(bytes, [4, 5, 12]);
    }
    for (bytes, words) in [
        ("1 10 5\n2 7 4\n", &["node-0.txt, line 1", "form = \"lists\" or form = \"pairs\""][..]),
        ("user,item,rating\n1,10,5\n2,7,good\n", &["node-0.txt, line 3", "\"good\" is no number"]),
        ("userId,uid,item\n1,2,3\n", &["node-0.txt, line 1", "several columns for the user"]),
        ("user,item\n1,\"Film, The\n", &["node-0.txt, line 2", "a quote is not closed"]),
    ] {
        assert_refused(&files.interactions(bytes), words);
    }
}

#[test]
fn tables_are_read_in_every_form_and_say_which_column_is_the_label() {
    let files = Files::new();
    let table = format!("a,b,kind\n{}", rows(|row| ["x", "y"][row % 2].to_owned()));
    let (expected, said) = files.card(&table);
    assert!(said.contains("label: column `kind`, the last; 12 samples, 2 classes"), "{said}");
    for bytes in [
        table.replace(',', ";").into_bytes(),
        table.replace(',', "\t").into_bytes(),
        format!("sep=,\n{table}").into_bytes(),
        format!("\u{feff}{table}").into_bytes(),
        utf_16(&table),
        gzipped(table.as_bytes()),
        format!("{table},,\n,,\n").into_bytes(),
    ] {
        let (card, said) = files.card(&bytes);
        assert_eq!(card, expected, "{:?}", String::from_utf8_lossy(&bytes));
        assert!(said.contains("12 samples, 2 classes"), "{said}");
    }
    let smokes = |yes: &str, no: &str| {
        let row = |row: usize| format!("{},{row},{}\n", if row.is_multiple_of(3) { yes } else { no }, row % 2);
        files.card(format!("smokes,age,kind\n{}", (0..12).map(row).collect::<String>())).0
    };
    assert_eq!(smokes("True", "False"), smokes("1", "0"));
    let classes = |labels: [&str; 6]| {
        files.card(format!("a,b,kind\n{}", rows(|row| labels[row % 6].to_owned()))).0["classes"].clone()
    };
    assert_eq!(
        classes(["1e+05", "100000", "99999", "2E5", "200000.0", "99999"]),
        serde_json::json!(["99999", "100000", "200000"])
    );
    assert_eq!(classes(["TRUE", "true", "False", "FALSE", "True", "false"]), serde_json::json!(["false", "true"]));
    // Whole numbers above numbers name the columns beside a word.
    let (card, said) = files.card(format!("0,1,label\n{}", rows(|row| (row % 2).to_string())));
    assert_eq!((&card["columns"], &card["classes"]), (&serde_json::json!(["0", "1"]), &serde_json::json!(["0", "1"])));
    assert!(said.contains("taken for names of columns") && said.contains("12 samples, 2 classes"), "{said}");
}

#[test]
fn tables_that_cannot_be_used_are_refused_by_every_command_with_their_line_and_a_way_out() {
    let files = Files::new();
    let good = rows(|row| (row % 2).to_string());
    for missing in ["nan", "NA", ""] {
        let table =
            format!("a,b,kind\n{}", rows(|row| if row == 2 { missing.to_owned() } else { (row % 2).to_string() }));
        files.refuse_table(&table, &["line 4", "column 3 (kind)", "the label is missing", "Leave the row out"]);
    }
    files.refuse_table(
        &format!("0,1,2\n{good}"),
        &["line 1", "is it a header or a sample?", "Give the table a first line"],
    );
    files.refuse_table(&format!("a,b,a\n{good}"), &["line 1", "two columns `a`", "give each its own name"]);
    files.refuse_table(&format!("a,b,kind\n{good}1,,0\n"), &["line 14, column 2 (b)", "fill it in"]);
    files.refuse_table(&format!("a,b,kind\n{good}1,red,0\n"), &["line 14, column 2 (b)", "\"red\""]);
    files.refuse_table(&format!("a,b,kind\n,,\n{good}"), &["line 2", "remove the line"]);
    let away = run(&["data", "card", "--data", "csv:~/nowhere/t.csv"]);
    assert_refused(&away, &["~/nowhere/t.csv", "write $HOME in its place"]);
    files.write("t.xlsx", b"PK\x03\x04\x14\0\x06\0xl/workbook");
    let book = run(&["data", "card", "--data", &format!("csv:{}", text(&files.path("t.xlsx")))]);
    assert_refused(&book, &["t.xlsx", "save it as CSV"]);
}

#[test]
fn every_command_that_takes_a_table_says_which_column_is_the_label() {
    let files = Files::new();
    let mut table = "p1,p2,p3\n".to_owned();
    (0..60).for_each(|row| writeln!(table, "{},{},{}", row * 7 % 41, row * 3 % 11, row % 2).unwrap());
    let data = files.table(&table);
    let expected = "label: column `p3`, the last; 60 samples, 2 classes";
    let says = |arguments: &[&str]| {
        let output = run(&[arguments, &["--data", &data]].concat());
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
        let said = stderr(&output);
        assert_eq!(said.matches(expected).count(), 1, "{arguments:?}: {said}");
    };
    let demo = files.path("demo");
    says(&["data", "card"]);
    says(&["simulate", "--topology", "ring:n=3", "--model", "softmax", "--rounds", "2"]);
    says(&["demo", "--peers", "2", "--model", "softmax", "--rounds", "2", "--no-comparison", "-o", text(&demo)]);
    let model = demo.join("peers/0/model.safetensors");
    says(&["eval", text(&model)]);

    // A peer says it among its events, and to a person.
    let pair = Pair::new();
    let task = ["--data", &data, "--model", "softmax", "--rounds", "4"];
    let mut first = pair.start_first(&task);
    first.wait_for_warning(expected);
    let (home, address) = (pair.home(1), first.address());
    let mut second = mingle();
    second.args(["run", "--home", text(&home), "--bootstrap", &address, "--listen", "/ip4/127.0.0.1/tcp/0"]).args(task);
    let second = second.stdin(Stdio::null()).output().unwrap();
    assert!(second.status.success() && stderr(&second).contains(expected), "{}", stderr(&second));
    assert_eq!(first.wait_through_rounds_for("done")["round"], 4);
    assert_eq!(first.exit_code(), Some(0));

    // Two equal columns of new samples: neither is taken.
    let twice = format!("csv:{}", files.write("twice.csv", "p1,p2,p1\n1,2,3\n"));
    let refused = run(&["predict", text(&model), "--data", &twice]);
    assert_refused(&refused, &["twice.csv, line 1", "two columns `p1`", "give each its own name"]);
}

#[test]
fn models_of_other_programs_are_named_by_every_command_that_reads_one() {
    let files = Files::new();
    let zipped = files.write("model.pt", b"PK\x03\x04\0\0\x08\x08\0\0\0\0\0\0\0\0");
    let pickled = files.write("old.pt", b"\x80\x02}q\0X\x01\0\0\0wq\x01K\x01s.");
    let table = files.table(format!("a,b,kind\n{}", rows(|row| (row % 2).to_string())));
    for (model, words) in [(&zipped, "a zip archive, as torch.save"), (&pickled, "a pickle, as torch.save")] {
        for arguments in [&["predict", model, "--data", &table][..], &["eval", model], &["ckpt", "inspect", model]] {
            assert_refused(&run(arguments), &[model, words, "no safetensors file", "hint: ", "save_file"]);
        }
    }
}

#[test]
fn images_under_the_names_of_archives_and_arrays_of_every_kind_are_read() {
    let files = Files::new();
    let idx = |kind: u8, sizes: &[u32], values: Vec<u8>| {
        let sizes: Vec<u8> = sizes.iter().flat_map(|size| size.to_be_bytes()).collect();
        [vec![0, 0, 8, kind], sizes, values].concat()
    };
    for (part, count) in [("train", 8), ("t10k", 4)] {
        let pixels = (0..count * 6).map(|at| (at * 37 % 256) as u8).collect();
        files.write(&format!("idx/{part}-images.idx3-ubyte"), idx(3, &[count, 2, 3], pixels));
        files.write(
            &format!("idx/{part}-labels.idx1-ubyte"),
            idx(1, &[count], (0..count).map(|at| (at % 2) as u8).collect()),
        );
    }
    let data = format!("idx:{}", text(&files.path("idx")));
    let simulated =
        run(&["simulate", "--topology", "ring:n=3", "--model", "softmax", "--rounds", "1", "--data", &data]);
    assert!(simulated.status.success(), "{}", stderr(&simulated));
    fs::remove_file(files.path("idx/train-labels.idx1-ubyte")).unwrap();
    let gone = run(&["data", "card", "--data", &data]);
    assert_refused(&gone, &["train-labels-idx1-ubyte"]);

    let numbers = |values: &[i64], bytes: Encoding| values.iter().flat_map(|&value| bytes(value)).collect::<Vec<u8>>();
    let labels = numbers(&[0, 1, 1], |value| value.to_le_bytes().to_vec());
    let edges = numbers(&[0, 1, 1, 2], |value| value.to_le_bytes().to_vec());
    let features: [(&str, Encoding); 4] = [
        ("<f2", |value| [0, [0x00, 0x3c][value as usize]].to_vec()),
        ("|b1", |value| vec![value as u8]),
        ("|i1", |value| vec![value as u8]),
        (">f4", |value| (value as f32).to_be_bytes().to_vec()),
    ];
    for (kind, bytes) in features {
        let x = numbers(&[0, 1, 1, 0, 1, 1], bytes);
        let of_numpy = [
            ("node_features", kind, "(3, 2)", x.clone()),
            ("node_labels", "<i8", "(3,)", labels.clone()),
            ("edges", "<i8", "(2, 2)", edges.clone()),
        ];
        // The edges are (0, 1) and (1, 2): where sources come first, and in pairs, these are the same numbers.
        let in_rows = edges.clone();
        let of_pytorch =
            [("x", kind, "(3, 2)", x), ("y", "<i8", "(3,)", labels.clone()), ("edge_index", "<i8", "(2, 2)", in_rows)];
        for arrays in [of_numpy, of_pytorch] {
            let found = graph(&files.write("g.npz", npz(&arrays)));
            assert_eq!(
                (&found["nodes"], &found["edges"], &found["features"]),
                (&3.into(), &2.into(), &2.into()),
                "{kind}: {found}"
            );
        }
    }
    let objects = npz(&[
        ("x", "|O", "(3, 2)", vec![0; 48]),
        ("y", "<i8", "(3,)", labels),
        ("edge_index", "<i8", "(2, 2)", edges),
    ]);
    assert_refused(
        &run(&["graph", "show", "--data", &files.write("o.npz", objects)]),
        &["o.npz, array", "it holds |O"],
    );
}

#[test]
fn a_peer_is_found_by_a_host_and_a_port_and_other_forms_are_refused_with_the_right_one() {
    let pair = Pair::new();
    let (homes, plan) = (pair.homes(), pair.plan());
    let task = ["--model", "softmax", "--rounds", "8"];
    let place = ["--home", text(&homes[0]), "--plan", text(&plan), "--listen", "localhost:0"];
    let mut first = RunningPeer::start_listening(&[&place[..], &task].concat());
    let listening = first.wait_for("listening");
    let tcp = listening["addresses"].as_array().unwrap().iter().filter_map(Value::as_str);
    let tcp = tcp.filter_map(|address| address.split_once("/tcp/")).next().unwrap().1;
    let port = tcp.split('/').next().unwrap();
    let place = ["--home", text(&homes[1]), "--bootstrap", &format!("localhost:{port}"), "--listen", "127.0.0.1:0"];
    let mut second = RunningPeer::start_listening(&[&place[..], &task].concat());
    for peer in [&mut first, &mut second] {
        assert_eq!(peer.wait_through_rounds_for("done")["round"], 8);
        assert_eq!(peer.exit_code(), Some(0));
    }
    for (option, address, words) in [
        ("--bootstrap", "localhost", &["it has no port", "/ip4/"][..]),
        ("--bootstrap", "http://localhost:4710", &["no http:// before it", "localhost:4710"]),
        ("--bootstrap", "localhost:0", &["port 0", "the port that the peer prints"]),
        ("--listen", "ward7.example.org:4710", &["not on a name", "0.0.0.0:4710"]),
    ] {
        let mut command: Command = mingle();
        command.args(["run", "--home", text(&homes[0]), option, address]).stdin(Stdio::null());
        assert_fails(&command.output().unwrap(), 2, words);
    }
}
