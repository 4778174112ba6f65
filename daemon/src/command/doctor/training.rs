//! Checks of the training: settings, device, data and model.

use mingle_builtin::options::TrainingOptions;
use mingle_builtin::task::{self, TaskSamples};
use mingle_doctor::Check;
use mingle_models::Task;

use crate::config::ConfigFile;

/// The check of a valid configuration file, or of none.
pub(super) fn config(file: Option<&ConfigFile>) -> Check {
    Check::ok(
        "config",
        match file {
            Some(file) => format!("{} can be used, it sets {} settings", file.path().display(), file.entries().count()),
            None => "no file, so all is as the environment says, or default".to_owned(),
        },
    )
}

/// Opens the device.
pub(super) fn device(name: &str) -> Check {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    match task::open_device(name) {
        Ok(device) if device.adapter().software => Check::warn(
            "device",
            format!("{device}, which computes on the processor, {threads} threads"),
            "the graphics driver was not found; --device cpu is faster than its replacement",
        ),
        Ok(device) => Check::ok("device", format!("{device}, {threads} threads")),
        Err(failure) => {
            Check::fail("device", format!("{failure:#}"), "name one of the devices of this build with --device")
        }
    }
}

/// Checks that the data can be read and that the model fits them. Remarks on how they were read are checks of their own.
pub(super) fn data(training: &TrainingOptions) -> (Option<Task>, Vec<Check>) {
    let loaded = TaskSamples::load(&training.data, training.task, training.seed)
        .and_then(|parts| Ok((parts.task(&training.model)?, parts)));
    match loaded {
        Ok((task, parts)) => {
            let finding = format!(
                "{}: {} training and {} test samples of {} for {}; {} has {} parameters",
                training.data,
                parts.all().len(),
                parts.test.len(),
                task.shape(),
                task.objective(),
                task.model(),
                task.parameter_count()
            );
            let remarks = parts.remarks().iter().map(|remark| Check::ok("data", remark));
            (Some(task), std::iter::once(Check::ok("data", finding)).chain(remarks).collect())
        }
        Err(failure) => (
            None,
            vec![Check::fail(
                "data",
                format!("{failure:#}"),
                failure.next_step().unwrap_or("repair that, or name others with --data and --model"),
            )],
        ),
    }
}
