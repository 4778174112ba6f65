//! Language models: encoding of text as tokens, training of a GPT, and generation of text from a checkpoint.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;

use mingle_models::{
    Augmentation, Checkpoint, DataSet, DataSource, Device, DeviceName, Evaluator, GenerationError, GenerationOptions,
    ModelFile, OptimizerOptions, Quality, Samples, SiteWeight, Split, Task, TextGenerator, Tokens, Trainer,
    TrainerOptions, Vocabulary,
};

const TINY: &str = "gpt:layers=2,heads=2,width=16,context=8";

fn cpu() -> Device {
    DeviceName::Cpu.open().unwrap()
}

fn embedded() -> DataSet {
    "text".parse::<DataSource>().unwrap().load(0).unwrap()
}

fn load(source: &str) -> Result<DataSet, String> {
    source.parse::<DataSource>().unwrap().load(0).map_err(|error| error.to_string())
}

fn task(model: &str, samples: &Samples) -> Task {
    Task::new(model.parse().unwrap(), samples.shape(), samples.classes()).unwrap()
}

fn options(task: Task, optimizer: OptimizerOptions, batch_size: usize) -> TrainerOptions {
    TrainerOptions {
        task,
        device: cpu(),
        optimizer,
        batch_size,
        augmentation: Augmentation::NONE,
        data_seed: 3,
        weight: SiteWeight::Equal,
    }
}

fn add(parameters: &mut [f32], change: &[f32], factor: f32) {
    parameters.iter_mut().zip(change).for_each(|(parameter, change)| *parameter += factor * change);
}

#[test]
fn the_embedded_text_is_held_out_by_its_end_and_its_tokens_are_characters() {
    let data = embedded();
    assert_eq!((data.train.len(), data.test.len(), data.train.classes()), (35_917, 3_991, 58));
    let vocabulary = Vocabulary::of_card(&data.card).unwrap();
    let text: Vec<u8> = data.train.labels()[..14].iter().flat_map(|&token| vocabulary.bytes(token.into())).collect();
    assert_eq!(text, b"First Citizen:");
    let bytes = load("text,tokens=bytes").unwrap();
    assert_eq!((bytes.train.len(), bytes.train.classes()), (35_917, 256));
}

#[test]
fn a_gpt_has_the_parameters_of_nanogpt_and_the_tied_weights_once() {
    let tokens = Samples::of_text(Tokens::Characters, 65, vec![0; 100]).unwrap();
    // nanoGPT reports 0.80 million for this setting.
    assert_eq!(task("gpt", &tokens).parameter_count(), 65 * 128 + 64 * 128 + 4 * (12 * 128 * 128 + 2 * 128) + 128);

    let task = task(TINY, &tokens);
    let parameters = task.initial_parameters(5);
    assert_eq!((parameters.len(), &parameters), (task.parameter_count(), &task.initial_parameters(5)));
    let of_tokens = &parameters[..65 * 16];
    let deviation = (of_tokens.iter().map(|value| value * value).sum::<f32>() / of_tokens.len() as f32).sqrt();
    assert!((deviation / 0.02 - 1.0).abs() < 0.1, "{deviation}");
}

#[test]
fn an_untrained_model_knows_nothing_and_every_token_but_the_first_is_judged() {
    let data = embedded();
    let task = task(TINY, &data.train);
    let parameters = task.initial_parameters(1);
    let evaluation = Evaluator::new(task, &cpu()).evaluate(&parameters, &data.test).unwrap();
    assert_eq!(evaluation.samples, data.test.predictable());
    assert!((evaluation.loss - 58f64.ln()).abs() < 0.05, "{evaluation:?}");
    let Quality::NextToken { bits, tokens, .. } = evaluation.quality else { panic!("{evaluation:?}") };
    assert!((bits * 2f64.ln() - evaluation.loss).abs() < 1e-12 && tokens == Tokens::Characters);
    assert_eq!(evaluation.metrics()[0], ("bits_per_character", bits));
}

/// A step of plain gradient descent is the gradient: along it, the loss falls at the rate of its norm.
#[test]
fn gradients_are_the_slope_of_the_loss() {
    let window: Vec<u16> = (0..9).map(|token| token * 5 % 7).collect();
    let samples = Samples::of_text(Tokens::Bytes, 256, window).unwrap();
    let task = task(TINY, &samples);
    let optimizer = OptimizerOptions::sgd(1.0);
    let mut trainer = Trainer::new(options(task, optimizer, 2), samples).unwrap();
    let mut from = task.initial_parameters(1);
    // Away from the initial parameters, where all tokens are alike.
    from.iter_mut().enumerate().for_each(|(index, value)| *value = *value * 4.0 + (index % 7) as f32 * 0.01);
    let gradient = trainer.train(&from, 1).unwrap().delta;
    let square: f32 = gradient.iter().map(|value| value * value).sum();
    let length = 0.002 / square.sqrt();
    let mut loss_at = |distance: f32| {
        let mut there = from.clone();
        add(&mut there, &gradient, distance);
        f64::from(trainer.train(&there, 1).unwrap().mean_loss)
    };
    let slope = (loss_at(-length) - loss_at(length)) / f64::from(2.0 * length);
    assert!((slope / f64::from(square) - 1.0).abs() < 0.01, "{slope} for {square}");
}

#[test]
fn a_model_that_sees_enough_of_a_text_knows_it_by_heart() {
    let text: Vec<u16> = "to be or not to be ".bytes().cycle().take(400).map(u16::from).collect();
    let samples = Samples::of_text(Tokens::Bytes, 256, text).unwrap();
    let task = task("gpt:layers=1,heads=2,width=32,context=16", &samples);
    let optimizer = OptimizerOptions { clip_gradients: Some(1.0), ..OptimizerOptions::adamw(0.01) };
    let mut trainer = Trainer::new(options(task, optimizer, 8), samples.clone()).unwrap();
    let mut parameters = task.initial_parameters(1);
    let outcome = trainer.train(&parameters, 800).unwrap();
    add(&mut parameters, &outcome.delta, 1.0);
    assert_eq!(outcome.samples, 800 * 8 * 16);
    let evaluation = Evaluator::new(task, &cpu()).evaluate(&parameters, &samples).unwrap();
    // The tokens that follow the first ones of a window are not determined.
    assert!(evaluation.score() > 0.75, "{evaluation:?}");

    let options = GenerationOptions { top_k: Some(1), ..GenerationOptions::default() };
    let mut generator = TextGenerator::new(task, Vocabulary::of_bytes(), &parameters, &cpu(), options).unwrap();
    generator.prompt("to be or n").unwrap();
    let text: Vec<u8> = (0..9).flat_map(|_| generator.next_token().unwrap()).collect();
    assert_eq!(text, b"ot to be ");
}

#[test]
fn a_trainer_goes_on_from_its_state_with_the_windows_it_would_have_seen() {
    let data = embedded();
    let task = task(TINY, &data.train);
    let make = || Trainer::new(options(task, OptimizerOptions::adamw(0.01), 4), data.train.clone()).unwrap();
    let from = task.initial_parameters(1);
    let (mut whole, mut first, mut second) = (make(), make(), make());
    let wanted = whole.train(&from, 6).unwrap().delta;
    let mut middle = from.clone();
    add(&mut middle, &first.train(&from, 3).unwrap().delta, 1.0);
    second.restore(&first.state().unwrap()).unwrap();
    let mut end = middle.clone();
    add(&mut end, &second.train(&middle, 3).unwrap().delta, 1.0);
    let straight: Vec<f32> = from.iter().zip(&wanted).map(|(from, change)| from + change).collect();
    let apart = end.iter().zip(&straight).map(|(one, other)| (one - other).abs()).fold(0.0, f32::max);
    assert!(apart < 1e-5, "{apart}");
    assert_eq!(make().train(&from, 6).unwrap().delta, wanted, "the same bits");
}

#[test]
fn the_same_seed_gives_the_same_text_and_what_cannot_be_is_refused() {
    let data = embedded();
    let (task, vocabulary) = (task(TINY, &data.train), Vocabulary::of_card(&data.card).unwrap());
    let parameters = task.initial_parameters(1);
    let text = |seed| {
        let options = GenerationOptions { seed, ..GenerationOptions::default() };
        let mut generator = TextGenerator::new(task, vocabulary.clone(), &parameters, &cpu(), options).unwrap();
        (0..40).flat_map(|_| generator.next_token().unwrap()).collect::<Vec<u8>>()
    };
    assert_eq!(text(1), text(1));
    assert_ne!(text(1), text(2));

    let usual = GenerationOptions::default();
    let refused = |options, parameters: &[f32]| {
        TextGenerator::new(task, vocabulary.clone(), parameters, &cpu(), options).unwrap_err()
    };
    assert!(matches!(
        refused(GenerationOptions { temperature: 0.0, ..usual }, &parameters),
        GenerationError::Option(_)
    ));
    assert!(matches!(refused(GenerationOptions { top_k: Some(0), ..usual }, &parameters), GenerationError::Option(_)));
    assert!(matches!(refused(usual, &parameters[1..]), GenerationError::Task(_)));
    let nothing = vec![f32::NAN; parameters.len()];
    let mut generator = TextGenerator::new(task, vocabulary.clone(), &nothing, &cpu(), usual).unwrap();
    assert_eq!(generator.next_token(), Err(GenerationError::NotFinite));
    let error = generator.prompt("\u{e9}").unwrap_err().to_string();
    assert_eq!(error, "the character 'é' of the prompt is none of the 58 that the model was trained on");
}

#[test]
fn a_checkpoint_has_the_names_of_gpt2_and_the_heads_in_its_metadata() {
    let data = embedded();
    let task = task(TINY, &data.train);
    let metadata = BTreeMap::from([("model".to_owned(), task.model().to_string())]);
    let checkpoint = Checkpoint { parameters: task.initial_parameters(2), metadata };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    checkpoint.save(&path, &task).unwrap();
    assert_eq!(Checkpoint::load(&path, &task).unwrap(), checkpoint);
    let file = ModelFile::read(&path).unwrap();
    assert_eq!((file.model(), file.parameter_count()), (Some(task.model()), task.parameter_count()));
    let shapes: BTreeMap<&str, &[usize]> = file.tensors.iter().map(|it| (it.name.as_str(), &it.shape[..])).collect();
    assert_eq!(shapes["wte.weight"], [58, 16]);
    assert_eq!(shapes["h.1.attn.c_attn.weight"], [48, 16], "PyTorch's order: outputs first");
    assert_eq!(shapes["ln_f.weight"], [16]);
    assert_eq!(shapes.len(), 3 + 2 * 6, "{shapes:?}");
}

#[test]
fn a_text_is_shared_out_in_contiguous_parts_whatever_the_split() {
    let text: Vec<u16> = (0..103).collect();
    let samples = Samples::of_text(Tokens::Bytes, 256, text.clone()).unwrap();
    for split in ["iid", "label-sorted", "dirichlet:0.3"] {
        let parts = split.parse::<Split>().unwrap().share_out(&samples, 4, 9).unwrap();
        let whole: Vec<u16> = parts.iter().flat_map(|part| samples.select(part).labels().to_vec()).collect();
        assert_eq!(whole, text);
        assert!(parts.iter().all(|part| (25..=26).contains(&part.len())));
    }
    assert!(Split::Iid.share_out(&samples, 104, 0).is_err());
}

#[test]
fn what_is_no_text_or_too_short_is_refused_with_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        format!("text:{}", path.display())
    };
    let words = |source: &str| load(source).unwrap_err();
    assert!(words(&write("empty.txt", b"")).contains("has 0 tokens: a text needs at least 20"));
    let latin = write("latin.txt", b"one line\nand caf\xe9, which is Latin-1\n");
    assert!(words(&latin).contains("latin.txt, line 2: the byte at 16 is not UTF-8"), "{}", words(&latin));
    assert_eq!(load(&format!("{latin},tokens=bytes")).unwrap().card.classes().len(), 256);
    assert!(words(&write("one.txt", &[b'a'; 50])).contains("1 classes cannot be learnt"));
    assert!(words(&write("cut.txt.gz", b"\x1f\x8b\x08")).contains("cannot read"));
    for text in ["text:", "textual", "text,tokens=words", "text:,tokens=bytes", "text,", "text:a,tokens="] {
        assert!(text.parse::<DataSource>().is_err(), "{text}");
    }
    for text in ["text", "text,tokens=bytes", "text:a.txt", "text:a,b.txt,tokens=characters"] {
        assert_eq!(text.parse::<DataSource>().unwrap().to_string(), text);
    }
}

#[test]
fn a_text_is_held_to_the_vocabulary_of_the_task() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.txt.gz");
    let mut packed = flate2::write::GzEncoder::new(fs::File::create(&path).unwrap(), flate2::Compression::fast());
    packed.write_all("First a line of letters\nthen a caf\u{e9}\n".as_bytes()).unwrap();
    packed.finish().unwrap();
    let read = |tokens: &str| format!("text:{}{tokens}", path.display()).parse::<DataSource>().unwrap().read().unwrap();
    let card = embedded().card;
    let says = read("").data_set(&card, 0).unwrap_err().to_string();
    assert!(says.contains("other.txt.gz, line 2, column 11: the character \u{e9} is not in the vocabulary"), "{says}");
    assert!(says.contains("which has 58 characters") && says.contains("tokens=bytes"), "{says}");

    let bytes = load("text,tokens=bytes").unwrap().card;
    assert_eq!(read("").data_set(&bytes, 0).unwrap().train.classes(), 256, "what a token is, the task says");
    let says = read(",tokens=characters").data_set(&bytes, 0).unwrap_err().to_string();
    assert!(says.contains("a sample is text in characters here and text in bytes there"), "{says}");
}

#[test]
fn texts_that_are_too_short_and_steps_that_are_too_large_are_refused_before_they_begin() {
    let short = Samples::of_text(Tokens::Bytes, 256, vec![1; 8]).unwrap();
    let task_of_short = task(TINY, &short);
    let refuse = |task: Task, batch: usize, samples: Samples| {
        Trainer::new(options(task, OptimizerOptions::sgd(0.1), batch), samples).err().unwrap().to_string()
    };
    assert!(refuse(task_of_short, 1, short).starts_with("this peer has 8 tokens of text: windows of 8 need"));
    let long = Samples::of_text(Tokens::Bytes, 256, vec![1; 10_000]).unwrap();
    assert!(refuse(task(TINY, &long), 1 << 20, long.clone()).contains("take a smaller batch"));
    for model in ["gpt:layers=128,width=16384,heads=128,context=8192", "gpt:layers=128,heads=128,context=8192"] {
        let says = Task::new(model.parse().unwrap(), long.shape(), 256).unwrap_err().to_string();
        assert!(says.contains("parameters, more than") || says.contains("make it smaller"), "{says}");
    }
    let says = Task::new("mlp".parse().unwrap(), long.shape(), 256).unwrap_err().to_string();
    assert!(says.contains("text is for gpt"), "{says}");
}
