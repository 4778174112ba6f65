//! Waits of a peer that starts, remarked on while they last.

use std::time::Duration;

use tokio::time::Instant;

/// Time after which a wait is remarked on.
const LONG: Duration = Duration::from_secs(5);

/// A wait that is remarked on once.
pub(super) struct LongWait {
    /// The time of the remark, until it is made.
    remark_at: Option<Instant>,
}

impl LongWait {
    /// A wait that begins now.
    pub(super) fn begin() -> Self {
        Self { remark_at: Some(Instant::now() + LONG) }
    }

    /// Resolves once, when the wait has become long. Nothing is lost where the future is dropped before.
    pub(super) async fn is_long(&mut self) {
        match self.remark_at {
            Some(at) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
        self.remark_at = None;
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_wait_is_remarked_on_once_however_often_it_is_looked_at() {
        let mut wait = LongWait::begin();
        assert_eq!([(); 3].map(|()| wait.is_long().now_or_never()), [None; 3], "it has just begun");
        wait.remark_at = Some(Instant::now());
        wait.is_long().await;
        assert_eq!(wait.is_long().now_or_never(), None, "it was remarked on");
    }
}
