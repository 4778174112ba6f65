//! Versions of one precision: the newest file, and patches that lead to it.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Instant;

use mingle_patch::{ModelBytes, encode};

use crate::messages::{MAX_PARTS, ModelPart};

/// Most files of one precision in memory: the newest one, and older ones that are still being sent.
const MOST_FILES: usize = 3;
/// Patches that are kept have at most this share of the bytes of a file.
const PATCHES_PER_FILE: usize = 2;

/// A model file at a round, shared by all that are sent it.
#[derive(Debug)]
pub(super) struct Version {
    pub(super) round: u64,
    pub(super) last_round: u64,
    pub(super) is_final: bool,
    pub(super) file: ModelBytes,
    pub(super) made_at: Instant,
}

/// A patch from one version to the next.
#[derive(Clone, Debug)]
pub(super) struct Step {
    from: [u8; 32],
    bytes: Arc<[u8]>,
}

/// The versions of one precision.
#[derive(Debug, Default)]
pub(super) struct Line {
    newest: Option<Arc<Version>>,
    /// Patches, each on the file that the one before leads to; the last one leads to the newest file.
    steps: VecDeque<Step>,
    files: Vec<Weak<Version>>,
}

/// The bytes of a part on its way to a follower.
#[derive(Clone, Debug)]
pub(super) enum Load {
    Whole(Arc<Version>),
    Patch(Arc<[u8]>),
}

impl Load {
    pub(super) fn part(&self) -> ModelPart {
        match self {
            Self::Whole(version) => ModelPart::Whole(version.file.bytes().len() as u64),
            Self::Patch(bytes) => ModelPart::Patch(bytes.len() as u64),
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Whole(version) => version.file.bytes(),
            Self::Patch(bytes) => bytes,
        }
    }
}

impl Line {
    pub(super) fn newest(&self) -> Option<&Arc<Version>> {
        self.newest.as_ref()
    }

    /// Returns `true` if there is room for another file: slow readers still hold older ones.
    pub(super) fn has_room(&self) -> bool {
        self.files.iter().filter(|file| file.strong_count() > 0).count() < MOST_FILES
    }

    /// Makes this the newest version; `patch` leads to it. After the final version, which is not made by the same
    /// thread, no other one counts.
    pub(super) fn push(&mut self, version: Version, patch: Option<Step>) {
        let newest = self.newest.as_ref();
        if newest.is_some_and(|newest| newest.is_final) {
            return;
        }
        let before = newest.map(|newest| newest.file.digest());
        match patch.filter(|patch| Some(patch.from) == before) {
            Some(patch) => self.steps.push_back(patch),
            None => self.steps.clear(),
        }
        let most = version.file.bytes().len() / PATCHES_PER_FILE;
        let too_many = |steps: &VecDeque<Step>| {
            steps.len() > MAX_PARTS
                || (steps.len() > 1 && steps.iter().map(|step| step.bytes.len()).sum::<usize>() > most)
        };
        while too_many(&self.steps) {
            self.steps.pop_front();
        }
        let version = Arc::new(version);
        self.files.retain(|file| file.strong_count() > 0);
        self.files.push(Arc::downgrade(&version));
        self.newest = Some(version);
    }

    /// The way to the newest file for a follower that has this one: nothing, patches, or the whole file where that is
    /// shorter.
    pub(super) fn way(&self, version: &Arc<Version>, have: Option<[u8; 32]>) -> Vec<Load> {
        if have == Some(version.file.digest()) {
            return Vec::new();
        }
        let first = self.steps.iter().position(|step| have == Some(step.from));
        let patches = first.map(|first| self.steps.range(first..).map(|step| Load::Patch(Arc::clone(&step.bytes))));
        let patches: Vec<Load> = patches.into_iter().flatten().collect();
        let bytes: usize = patches.iter().map(|patch| patch.bytes().len()).sum();
        if patches.is_empty() || bytes >= version.file.bytes().len() {
            vec![Load::Whole(Arc::clone(version))]
        } else {
            patches
        }
    }
}

/// The patch between two versions; `None` if they have different tensors, or the patch is no shorter than the file.
pub(super) fn patch(before: &Version, after: &ModelBytes) -> Option<Step> {
    let bytes = encode(&before.file, after).ok().filter(|patch| patch.len() < after.bytes().len())?;
    Some(Step { from: before.file.digest(), bytes: bytes.into() })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use mingle_patch::apply;
    use mingle_training::Layout;

    use super::*;

    const DIMENSION: usize = 2_000;

    fn version(round: u64, model: &[f32]) -> Version {
        let file = ModelBytes::parse(Layout::flat(DIMENSION).encoder()(model).unwrap()).unwrap();
        Version { round, last_round: 9, is_final: false, file, made_at: Instant::now() }
    }

    fn push(line: &mut Line, next: Version) {
        let patch = line.newest().and_then(|before| patch(before, &next.file));
        line.push(next, patch);
    }

    /// A line after these many rounds, each of which changed one number, with all its files.
    fn line(rounds: u64) -> (Line, Vec<Vec<u8>>) {
        let (mut line, mut model, mut files) = (Line::default(), vec![0.5; DIMENSION], Vec::new());
        for round in 0..rounds {
            model[round as usize] += 0.25;
            let next = version(round, &model);
            files.push(next.file.bytes().to_vec());
            push(&mut line, next);
        }
        (line, files)
    }

    #[test]
    fn a_follower_of_any_kept_version_gets_patches_to_the_newest_and_any_other_the_whole_file() {
        let (line, files) = line(6);
        let newest = line.newest().unwrap();
        for file in &files {
            let mut file = ModelBytes::parse(file.clone()).unwrap();
            for load in line.way(newest, Some(file.digest())) {
                assert!(matches!(load, Load::Patch(_)), "{load:?}");
                file = apply(&file, load.bytes()).unwrap();
            }
            assert_eq!(file.bytes(), newest.file.bytes());
        }
        for have in [None, Some([7; 32])] {
            let way = line.way(newest, have);
            assert_eq!(way.len(), 1);
            assert_eq!(
                (way[0].part(), way[0].bytes()),
                (ModelPart::Whole(newest.file.bytes().len() as u64), newest.file.bytes())
            );
        }
    }

    #[test]
    fn a_version_that_is_made_beside_the_final_one_changes_nothing_and_a_patch_on_another_version_is_dropped() {
        let mut model = vec![0.5; DIMENSION];
        let mut next = |round| {
            model[round as usize] += 0.25;
            version(round, &model)
        };
        let (first, second, third) = (next(1), next(2), next(3));
        let (early, late) = (patch(&first, &second.file), patch(&first, &third.file));
        let mut line = Line::default();
        line.push(first, None);
        let have = line.newest().map(|newest| newest.file.digest());
        line.push(second, early);
        line.push(Version { is_final: true, ..third }, late);
        let last = Arc::clone(line.newest().unwrap());
        assert!(matches!(line.way(&last, have)[..], [Load::Whole(_)]), "the patch is not on the version before");
        line.push(next(4), None);
        assert_eq!(line.newest().unwrap().round, 3);
    }

    #[test]
    fn patches_and_files_in_memory_are_bounded() {
        let (line, files) = line(1_000);
        let bytes: usize = line.steps.iter().map(|step| step.bytes.len()).sum();
        assert!(line.steps.len() <= MAX_PARTS && bytes <= files[0].len() / PATCHES_PER_FILE, "{bytes}");
        let mut line = line;
        let mut slow = Vec::new();
        while line.has_room() {
            slow.push(Arc::clone(line.newest().unwrap()));
            push(&mut line, version(7, &vec![slow.len() as f32; DIMENSION]));
        }
        assert_eq!(slow.len(), MOST_FILES - 1);
        slow.pop();
        assert!(line.has_room());
    }
}
