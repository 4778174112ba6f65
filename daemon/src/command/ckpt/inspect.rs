//! `mingle ckpt inspect`: the contents of one model file or record.

use std::path::Path;

use mingle_builtin::verification::is_record;
use mingle_models::{ModelFile, TensorOutline};
use mingle_peer::{Result, records, units};
use mingle_protocol::record::Outline;
use serde_json::Value;

use crate::cli::CkptInspectArgs;
use crate::{model_files, out};

/// Checks the file, and prints its contents.
pub(super) fn execute(arguments: &CkptInspectArgs, json: bool) -> Result {
    let path = &arguments.file;
    if is_record(path) {
        let outline = records::read_outline(path)?;
        return show(json, || record_to_json(path, &outline), || describe_record(&outline));
    }
    let file = model_files::read(path)?;
    let hash = model_files::hash(path)?;
    show(json, || model_to_json(path, &file, &hash), || describe_model(&file, &hash))
}

fn show(json: bool, document: impl Fn() -> Value, text: impl Fn() -> Vec<String>) -> Result {
    if json {
        out::line(document());
    } else {
        text().iter().for_each(out::line);
    }
    Ok(())
}

fn describe_record(outline: &Outline) -> Vec<String> {
    let books = &outline.books;
    let owed: usize = books.outgoing.values().map(|link| link.outbox.len()).sum();
    let ratio = if outline.has_ratio { "with the last ratio" } else { "ratio from x and w" };
    let payload = outline.payload.map_or_else(|| "no payload".to_owned(), |codec| format!("payload {codec:?}"));
    let split = if books.split_done { "split" } else { "not split yet" };
    vec![
        format!("record     {} of node {}, incarnation {}", books.number, books.id, books.incarnation),
        format!(
            "plan       blake3:{} generation {}",
            hex::encode(books.generation.plan_hash),
            books.generation.counter
        ),
        format!("task       blake3:{}", hex::encode(books.task)),
        format!("step       {}, {split}", books.step),
        format!("weight     {}", units::exact_weight(u128::from(books.mass.units()))),
        format!("vectors    {} parameters, {ratio}, {payload}", outline.dimension),
        format!("links      {} in, {} out; {owed} parcels owed", books.incoming.len(), books.outgoing.len()),
        "checksum   right".to_owned(),
    ]
}

fn record_to_json(path: &Path, outline: &Outline) -> Value {
    let books = &outline.books;
    serde_json::json!({
        "schema": "mingle.ckpt-inspect/1",
        "kind": "record",
        "file": path,
        "record": books.number,
        "node": books.id.0,
        "incarnation": books.incarnation,
        "plan": hex::encode(books.generation.plan_hash),
        "generation": books.generation.counter,
        "task": hex::encode(books.task),
        "step": books.step,
        "split_done": books.split_done,
        "weight_units": books.mass.units(),
        "parameters": outline.dimension,
        "incoming": books.incoming.len(),
        "outgoing": books.outgoing.len(),
        "owed_parcels": books.outgoing.values().map(|link| link.outbox.len()).sum::<usize>(),
    })
}

fn describe_model(file: &ModelFile, hash: &str) -> Vec<String> {
    let model = file.model().map_or_else(|| "none of the models here".to_owned(), |model| model.to_string());
    let mut lines = vec![
        format!("model      {model}, {} parameters in {} bytes", file.parameter_count(), file.bytes),
        format!("content    blake3:{hash}"),
    ];
    let tensor = |tensor: &TensorOutline| format!("tensor     {:<16} {} {:?}", tensor.name, tensor.dtype, tensor.shape);
    lines.extend(file.tensors.iter().map(tensor));
    lines.extend(file.metadata.iter().map(|(key, text)| format!("says       {key}: {}", text.escape_debug())));
    lines
}

fn model_to_json(path: &Path, file: &ModelFile, hash: &str) -> Value {
    let tensor = |tensor: &TensorOutline| serde_json::json!({ "name": tensor.name, "dtype": tensor.dtype, "shape": tensor.shape });
    serde_json::json!({
        "schema": "mingle.ckpt-inspect/1",
        "kind": "model",
        "file": path,
        "model": file.model(),
        "parameters": file.parameter_count(),
        "bytes": file.bytes,
        "blake3": hash,
        "tensors": file.tensors.iter().map(tensor).collect::<Vec<_>>(),
        "metadata": file.metadata,
    })
}
