#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use super::settings::OF_ONE_START;
use super::*;

fn parse(text: &str) -> Result<ConfigFile> {
    ConfigFile::parse(Path::new("config.toml"), text)
}

/// The faults of a text, line by line.
#[track_caller]
fn faults(text: &str) -> Vec<String> {
    parse(text).unwrap_err().to_string().lines().map(str::to_owned).collect()
}

#[test]
fn every_option_of_run_is_a_setting_or_is_known_to_be_none() {
    let command = Cli::command();
    let run = command.find_subcommand("run").unwrap();
    let options: BTreeSet<&str> = run.get_arguments().map(|argument| argument.get_id().as_str()).collect();
    let settings = SETTINGS.iter().map(|setting| setting.key);
    let known: BTreeSet<&str> =
        settings.chain(OF_ONE_START.iter().copied()).chain(["home", "config", "json", "help"]).collect();
    let missing: Vec<_> = options.difference(&known).collect();
    assert!(missing.is_empty(), "give {missing:?} a row in settings.rs, or name them in OF_ONE_START");
    for setting in SETTINGS {
        assert!(options.contains(setting.key), "{} is no option of run", setting.key);
        assert_eq!(setting.env, format!("MINGLE_{}", setting.key.to_uppercase()));
    }
}

#[test]
fn help_and_file_show_the_settings_in_groups() {
    let mut command = command_line();
    let help = command.find_subcommand_mut("run").unwrap().render_long_help().to_string();
    let file = template();
    let mut shown = Vec::new();
    for setting in SETTINGS {
        let heading = setting.group.heading();
        let option = format!("--{} ", setting.key.replace('_', "-"));
        let (before, _) = help.split_once(&option).unwrap_or_else(|| panic!("{option} is missing in {help}"));
        let last_heading = before.lines().rfind(|line| !line.starts_with(' ') && line.ends_with(':')).unwrap();
        assert_eq!(last_heading, format!("{heading}:"), "{option}");
        if shown.last() != Some(&heading) {
            assert_eq!(file.matches(&format!("# ---- {heading} ----")).count(), 1, "{file}");
            shown.push(heading);
        }
    }
    assert_eq!(shown.len(), 7, "a group of settings lies together: {shown:?}");
}

#[test]
fn the_file_that_is_written_sets_nothing_and_uncommented_it_sets_what_is_the_default() {
    let text = template();
    assert_eq!(parse(&text).unwrap().entries().count(), 0, "{text}");
    // Entries, and only these, have ` = ` with a key before it.
    let is_entry = |line: &str| SETTINGS.iter().any(|setting| line.starts_with(&format!("# {} = ", setting.key)));
    let uncommented: Vec<&str> = text.lines().filter(|line| is_entry(line)).map(|line| &line[2..]).collect();
    let file = parse(&uncommented.join("\n")).unwrap();
    assert_eq!(file.entries().count(), SETTINGS.len(), "{text}");
    let defaults = Cli::command();
    let run = defaults.find_subcommand("run").unwrap();
    for (key, entry) in file.entries() {
        let argument = run.get_arguments().find(|argument| argument.get_id() == key).unwrap();
        let default: Vec<_> = argument.get_default_values().iter().map(|it| it.to_str().unwrap()).collect();
        assert!(default.is_empty() || default == entry.values, "{key}: {default:?} and {:?}", entry.values);
    }
}

#[test]
fn examples_can_be_used() {
    for setting in SETTINGS {
        let text = format!("{} = {}", setting.key, setting.example);
        assert!(parse(&text).is_ok(), "{text}: {:?}", parse(&text));
    }
}

#[test]
fn a_flag_wins_over_the_file_and_the_file_over_the_default() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.toml");
    std::fs::write(&path, "rounds = 7\nmodel = \"softmax\"\nlisten = [\"127.0.0.1:4710\"]\n").unwrap();
    let arguments = ["mingle", "run", "--config", path.to_str().unwrap(), "--rounds", "9"];
    let matches = command_line().get_matches_from(arguments);
    let cli = resolve(&matches, arguments.map(OsString::from)).unwrap();
    let crate::cli::Command::Run(run) = cli.command else { panic!("another command") };
    assert_eq!(run.training.rounds, 9);
    assert_eq!(run.training.model, "softmax");
    assert_eq!(run.training.samples.batch_size, 32);
    let listen: Vec<String> = crate::cli::multiaddrs(&run.listen).iter().map(ToString::to_string).collect();
    assert_eq!(listen, ["/ip4/127.0.0.1/udp/4710/quic-v1", "/ip4/127.0.0.1/tcp/4710"]);
}

#[test]
fn an_unknown_key_is_a_fault_with_its_line_and_the_nearest_that_is_known() {
    let found = faults("# settings\nrounds = 3\n\nlerning_rate = 0.1\n\n[limits]\ncpu = 3\n");
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(found[0], "config.toml:4: there is no setting `lerning_rate`; the nearest is `learning_rate`");
    assert!(found[1].starts_with("config.toml:6: there is no setting `limits`"), "{found:?}");
}

#[test]
fn a_value_of_the_wrong_type_names_line_key_and_what_is_possible() {
    for (text, words) in [
        ("rounds = \"many\"", "config.toml:1: rounds = \"many\": it must be a whole number, such as rounds = 200"),
        ("rounds = -3", "rounds = -3: it must be a whole number"),
        ("model = 3", "model = 3: it must be text in quotes, such as model = \"mlp:hidden=128\""),
        ("listen = \"/ip4/0.0.0.0/tcp/1\"", "it must be a list of texts in quotes"),
        ("listen = [1]", "it must be a list of texts in quotes"),
        ("listen = []", "at least one address"),
        ("learning_rate = \"fast\"", "it must be a number, such as learning_rate = 0.1"),
        ("plan = { a = 1 }", "it must be text in quotes"),
    ] {
        let found = faults(text);
        assert!(found[0].contains(words), "{found:?}");
    }
}

#[test]
fn a_value_that_run_would_not_take_says_so_with_its_line() {
    for (text, words) in [
        ("\nrounds = 0", "config.toml:2: rounds = 0: "),
        ("learning_rate = -1", "must be a positive number"),
        ("learning_rate = nan", "must be a positive number"),
        ("momentum = 1", "between 0 and 1"),
        ("optimizer = \"adam\"", "write sgd or adamw"),
        ("schedule = \"step:0,0.5\"", "the rate falls after at least 1 round"),
        ("clip_gradients = 0", "must be a positive number"),
        ("wait = \"for ever\"", "choose sync, bounded:STALENESS"),
        ("model = \"resnet\"", "write softmax, mlp"),
        ("data = \"imagenet\"", "data = \"imagenet\""),
        ("split = \"fair\"", "split = \"fair\""),
        ("device = \"tpu\"", "device = \"tpu\""),
        ("durability = \"maybe\"", "choose on or off"),
        ("bootstrap = [\"10.0.1.5\"]", "it is written as in bootstrap = [\"/ip4/"),
    ] {
        let found = faults(text);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains(words), "`{words}` is missing in {found:?}");
    }
}

#[test]
fn text_that_is_no_toml_is_a_fault_with_its_line_and_never_a_panic() {
    assert!(faults("rounds = 3\nmodel = \"mlp\n")[0].starts_with("config.toml:2: "));
    assert!(faults("rounds = 3\nrounds = 4\n")[0].starts_with("config.toml:2: "));
    for text in ["=", "[", "[[", "a.b.c = 1", "\u{0}", "rounds = 99999999999999999999999", "x = 1979-05-27", "\"\" = 1"]
    {
        assert!(parse(text).is_err(), "{text:?}");
    }
    let deep = format!("plan = {}1{}", "[".repeat(5000), "]".repeat(5000));
    assert!(parse(&deep).is_err());
}

#[test]
fn what_is_in_force_says_who_said_so() {
    let file = parse("\nrounds = 0x10\nbootstrap = []\n").unwrap();
    let last = [("join_timeout".to_owned(), vec!["5s".to_owned()]), ("rounds".to_owned(), vec!["5".to_owned()])];
    let settings = effective(Some(&file), &Remembered::new(last.into())).unwrap();
    let of = |key: &str| settings.iter().find(|it| it.setting.key == key).unwrap();
    assert_eq!(of("rounds").values, ["16"]);
    assert_eq!(of("rounds").origin, Origin::File("config.toml".into(), 2));
    assert!(of("bootstrap").values.is_empty());
    assert_eq!(
        (of("join_timeout").values.as_slice(), &of("join_timeout").origin),
        (&["5s".to_owned()][..], &Origin::LastRun)
    );
    assert_eq!(of("momentum").values, ["0"]);
    assert_eq!(of("momentum").origin, Origin::Default);
    assert!(of("split").values.is_empty());
    assert_eq!(of("listen").values.len(), 2);
}

#[test]
fn the_learning_rate_depends_on_the_optimizer_only_where_nobody_says_what_it_is() {
    let rate_of = |text: &str, flags: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.toml");
        std::fs::write(&path, text).unwrap();
        let arguments = [&["mingle", "run", "--config", path.to_str().unwrap()], flags].concat();
        let arguments: Vec<OsString> = arguments.into_iter().map(OsString::from).collect();
        let cli = resolve(&command_line().get_matches_from(&arguments), arguments).unwrap();
        let crate::cli::Command::Run(run) = cli.command else { panic!("another command") };
        run.training.learning_rate
    };
    let adamw = ["--optimizer", "adamw"];
    assert_eq!(rate_of("", &[]), 0.1);
    assert_eq!(rate_of("", &adamw), 0.001);
    assert_eq!(rate_of("optimizer = \"adamw\"", &[]), 0.001);
    assert_eq!(rate_of("optimizer = \"adamw\"", &["--optimizer", "sgd"]), 0.1);
    assert_eq!(rate_of("learning_rate = 0.05", &adamw), 0.05);
    assert_eq!(rate_of("learning_rate = 0.05", &["--optimizer", "adamw", "--learning-rate", "0.1"]), 0.1);
    let file = parse("optimizer = \"adamw\"").unwrap();
    let settings = effective(Some(&file), &Remembered::new(BTreeMap::new())).unwrap();
    let rate = settings.iter().find(|it| it.setting.key == "learning_rate").unwrap();
    assert_eq!((rate.values.as_slice(), &rate.origin), (&["0.001".to_owned()][..], &Origin::Default));
}

#[test]
fn mutated_configurations_are_refused_or_read() {
    // Short ones: most of the time goes into checking a setting's value, and each of them is a seed.
    let mut seeds = vec![b"# x\nrounds = 2_00\nlearning_rate = 1e-1\n".to_vec(), b"a = [1, {b = 2}]\n".to_vec()];
    seeds.extend(SETTINGS.iter().map(|setting| format!("{} = {}\n", setting.key, setting.example).into_bytes()));
    mingle_mutations::for_each_input("config", &seeds, |input| {
        if let Err(error) = parse(&String::from_utf8_lossy(input)) {
            assert!(!error.to_string().is_empty());
        }
    });
}
