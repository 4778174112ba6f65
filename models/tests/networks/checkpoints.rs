//! Checkpoints, read back by this crate and by the plain safetensors reader.

use std::collections::BTreeMap;
use std::path::PathBuf;

use mingle_models::{Checkpoint, ModelFile, SampleShape, Task};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use tempfile::TempDir;

const PHOTO: SampleShape = SampleShape::Image { channels: 1, height: 28, width: 28 };

fn task(model: &str) -> Task {
    Task::new(model.parse().unwrap(), PHOTO, 10).unwrap()
}

fn checkpoint(task: &Task) -> Checkpoint {
    let metadata = [("round", "12"), ("plan", "9f2e"), ("accuracy", "0.95"), ("format", "pt")];
    Checkpoint {
        parameters: task.initial_parameters(3),
        metadata: metadata.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect(),
    }
}

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    (folder, path)
}

#[test]
fn the_flat_tensors_of_a_task_are_those_of_its_file() {
    for model in ["softmax", "mlp", "cnn", "resnet-lite"] {
        let (_folder, path) = folder();
        let task = task(model);
        checkpoint(&task).save(&path, &task).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let of_file: BTreeMap<String, usize> =
            file.iter().map(|(name, tensor)| (name.to_owned(), tensor.shape().iter().product())).collect();
        let flat = task.flat_tensors();
        assert_eq!(flat.iter().cloned().collect::<BTreeMap<_, _>>(), of_file, "{model}");
        assert_eq!(flat.iter().map(|(_, length)| length).sum::<usize>(), task.parameter_count(), "{model}");
        // Biases are vectors, which are the same in both orders, so their places can be compared.
        let parameters = checkpoint(&task).parameters;
        let mut at = 0;
        for (name, length) in flat {
            let tensor = file.tensor(&name).unwrap();
            if tensor.shape().len() == 1 {
                let values: Vec<f32> =
                    tensor.data().as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
                assert_eq!(values, parameters[at..at + length], "{model}: {name}");
            }
            at += length;
        }
    }
}

#[test]
fn names_and_shapes_are_those_of_pytorch() {
    let shapes_of = |model: &str| -> BTreeMap<String, Vec<usize>> {
        let (_folder, path) = folder();
        let task = task(model);
        checkpoint(&task).save(&path, &task).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        file.iter()
            .map(|(name, tensor)| {
                assert_eq!(tensor.dtype(), Dtype::F32);
                (name.to_owned(), tensor.shape().to_vec())
            })
            .collect()
    };
    let expect = |shapes: &[(&str, &[usize])]| -> BTreeMap<String, Vec<usize>> {
        shapes.iter().map(|(name, shape)| ((*name).to_owned(), shape.to_vec())).collect()
    };
    assert_eq!(shapes_of("softmax"), expect(&[("linear.weight", &[10, 784]), ("linear.bias", &[10])]));
    assert_eq!(
        shapes_of("mlp:hidden=32"),
        expect(&[("fc1.weight", &[32, 784]), ("fc1.bias", &[32]), ("fc2.weight", &[10, 32]), ("fc2.bias", &[10]),])
    );
    assert_eq!(
        shapes_of("cnn"),
        expect(&[
            ("conv1.weight", &[32, 1, 5, 5]),
            ("conv1.bias", &[32]),
            ("conv2.weight", &[64, 32, 5, 5]),
            ("conv2.bias", &[64]),
            ("fc1.weight", &[512, 3136]),
            ("fc1.bias", &[512]),
            ("fc2.weight", &[10, 512]),
            ("fc2.bias", &[10]),
        ])
    );
}

#[test]
fn the_weight_of_a_linear_layer_is_transposed_and_nothing_else_is_moved() {
    let (_folder, path) = folder();
    let task = task("softmax");
    let saved = checkpoint(&task);
    saved.save(&path, &task).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let numbers = |name: &str| -> Vec<f32> {
        let data = file.tensor(name).unwrap().data();
        data.chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect()
    };
    let (weight, bias) = saved.parameters.split_at(784 * 10);
    let transposed: Vec<f32> =
        (0..10).flat_map(|class| (0..784).map(move |feature| weight[feature * 10 + class])).collect();
    assert_eq!(numbers("linear.weight"), transposed);
    assert_eq!(numbers("linear.bias"), bias);
    let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
    let metadata: BTreeMap<String, String> = header.metadata().clone().unwrap().into_iter().collect();
    assert_eq!(metadata, saved.metadata);
}

#[test]
fn every_model_loads_back_bit_for_bit() {
    for model in ["softmax", "mlp", "cnn", "resnet-lite"] {
        let (_folder, path) = folder();
        let task = task(model);
        let saved = checkpoint(&task);
        saved.save(&path, &task).unwrap();
        assert_eq!(Checkpoint::load(&path, &task).unwrap(), saved, "{model}");
    }
}

#[test]
fn equal_checkpoints_are_equal_files_and_replace_each_other() {
    let (folder, path) = folder();
    let task = task("softmax");
    let saved = checkpoint(&task);
    saved.save(&path, &task).unwrap();
    let first = std::fs::read(&path).unwrap();
    let other = Checkpoint { parameters: task.initial_parameters(4), ..saved.clone() };
    other.save(&path, &task).unwrap();
    assert_ne!(std::fs::read(&path).unwrap(), first);
    saved.save(&path, &task).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), first);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left behind");
}

#[test]
fn a_file_that_is_no_checkpoint_of_the_task_is_refused() {
    let (_folder, path) = folder();
    let (softmax, mlp) = (task("softmax"), task("mlp:hidden=32"));
    let refusal = |task: &Task| Checkpoint::load(&path, task).unwrap_err().to_string();
    assert!(refusal(&softmax).starts_with("cannot read checkpoint "));

    checkpoint(&softmax).save(&path, &softmax).unwrap();
    let good = std::fs::read(&path).unwrap();
    assert!(refusal(&mlp).contains("is no checkpoint of this model"), "{}", refusal(&mlp));
    let wide = task("mlp:hidden=64");
    checkpoint(&wide).save(&path, &wide).unwrap();
    assert!(refusal(&mlp).contains("is no checkpoint of this model"), "{}", refusal(&mlp));

    let mut damaged = vec![good[..good.len() - 1].to_vec(), good[..20].to_vec(), Vec::new(), vec![0xff; 64]];
    let mut lying = good.clone();
    lying[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    damaged.push(lying);
    let mut cut = good;
    cut[10] = b'}';
    damaged.push(cut);
    for bytes in damaged {
        std::fs::write(&path, &bytes).unwrap();
        assert!(refusal(&softmax).contains("is no checkpoint of this model"), "{}", refusal(&softmax));
    }
    std::fs::write(&path, vec![0; 2_000_000]).unwrap();
    assert!(refusal(&softmax).contains("larger than"), "{}", refusal(&softmax));
}

#[test]
fn saving_where_nothing_can_be_written_leaves_what_was_there() {
    let (folder, path) = folder();
    let task = task("softmax");
    let saved = checkpoint(&task);
    let nowhere = folder.path().join("missing").join("model.safetensors");
    let error = saved.save(&nowhere, &task).unwrap_err().to_string();
    assert!(error.starts_with("cannot write checkpoint ") && error.contains("missing"), "{error}");
    saved.save(&path, &task).unwrap();
    let short = Checkpoint { parameters: vec![0.0; 3], ..saved.clone() };
    let error = short.save(&path, &task).unwrap_err().to_string();
    assert_eq!(error, "model softmax has 7850 parameters, but 3 were given");
    assert_eq!(Checkpoint::load(&path, &task).unwrap(), saved);
}

/// The file with its tensors rounded to half precision, as PyTorch's `.to(torch.bfloat16)` or `.half()` would save them.
fn halved(file: &[u8], dtype: Dtype, round: fn(f32) -> [u8; 2]) -> Vec<u8> {
    let (_, header) = SafeTensors::read_metadata(file).unwrap();
    let tensors = SafeTensors::deserialize(file).unwrap();
    let halves: Vec<(String, Vec<usize>, Vec<u8>)> = tensors
        .iter()
        .map(|(name, tensor)| {
            let numbers = tensor.data().as_chunks().0.iter().map(|number| f32::from_le_bytes(*number));
            (name.to_owned(), tensor.shape().to_vec(), numbers.flat_map(round).collect())
        })
        .collect();
    let views = halves
        .iter()
        .map(|(name, shape, bytes)| (name.as_str(), TensorView::new(dtype, shape.clone(), bytes).unwrap()));
    safetensors::serialize(views, header.metadata().clone()).unwrap()
}

#[test]
fn files_in_half_precision_are_read_as_the_nearest_numbers() {
    let (_folder, path) = folder();
    let task = task("cnn");
    let written = checkpoint(&task);
    let file = written.to_bytes(&task).unwrap();
    let to_bf16 = |number: f32| half::bf16::from_f32(number).to_le_bytes();
    let to_f16 = |number: f32| half::f16::from_f32(number).to_le_bytes();
    for (dtype, round, error) in [(Dtype::BF16, to_bf16 as fn(f32) -> [u8; 2], 4e-3), (Dtype::F16, to_f16, 5e-4)] {
        std::fs::write(&path, halved(&file, dtype, round)).unwrap();
        let outline = ModelFile::read(&path).unwrap();
        assert_eq!((outline.difference(&task), outline.first_not_finite()), (None, None));
        let read = Checkpoint::load(&path, &task).unwrap();
        assert_eq!(read.metadata, written.metadata);
        for (read, written) in read.parameters.iter().zip(&written.parameters) {
            assert!((read - written).abs() <= error * written.abs() + 1e-7, "{dtype:?}: {read} for {written}");
        }
    }
    std::fs::write(&path, halved(&file, Dtype::F16, |_| half::f16::INFINITY.to_le_bytes())).unwrap();
    assert_eq!(ModelFile::read(&path).unwrap().first_not_finite().unwrap().not_finite, 32);
}
