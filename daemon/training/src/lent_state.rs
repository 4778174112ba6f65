//! The state of a training that leaves its peer, such as the moments of an optimizer, for members that join.

/// A training's state as members give it to one that joins. It is used on threads other than that of the training.
pub trait LentState: Send + Sync {
    /// The bytes for a member that joins; `None` before there are any, and where they stay with this peer.
    fn offered(&self) -> Option<Vec<u8>>;

    /// Most bytes that this training takes from another member; `None` where it has a state of its own, or wants none.
    fn wanted(&self) -> Option<usize>;

    /// Takes the bytes that another member offered. They may be anything: the training checks them before it uses them.
    fn take(&self, bytes: Vec<u8>);
}
