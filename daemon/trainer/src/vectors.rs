//! Vectors as bytes: `f32`, little-endian, one after the other, read and written piece by piece.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use mingle_peer::ErrorKind;
use mingle_peer::training::Layout;

use crate::error::Refusal;

const WIDTH: usize = size_of::<f32>();
/// Numbers in a piece of a body that is sent.
const PIECE: usize = 64 * 1024;
/// Timeout for each piece of a body that is received.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// A vector, `[dimension]`, as the body of a response; it is encoded piece by piece, on demand.
pub(crate) struct VectorBody {
    vector: Arc<[f32]>,
    at: usize,
    on_end: Option<Box<dyn FnOnce() + Send>>,
}

impl VectorBody {
    pub(crate) fn new(vector: Arc<[f32]>) -> Self {
        Self { vector, at: 0, on_end: None }
    }

    /// Sets a callback for when the last piece is taken to be sent.
    pub(crate) fn on_end(self, on_end: impl FnOnce() + Send + 'static) -> Self {
        Self { on_end: Some(Box::new(on_end)), ..self }
    }
}

impl HttpBody for VectorBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let rest = self.vector.get(self.at..).unwrap_or_default();
        if rest.is_empty() {
            return Poll::Ready(None);
        }
        let piece = &rest[..rest.len().min(PIECE)];
        let mut bytes = vec![0; piece.len() * WIDTH];
        for (bytes, value) in bytes.chunks_exact_mut(WIDTH).zip(piece) {
            bytes.copy_from_slice(&value.to_le_bytes());
        }
        self.at += bytes.len() / WIDTH;
        if self.at == self.vector.len()
            && let Some(on_end) = self.on_end.take()
        {
            on_end();
        }
        Poll::Ready(Some(Ok(Frame::data(bytes.into()))))
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.vector.len().saturating_sub(self.at) * WIDTH;
        SizeHint::with_exact(rest as u64)
    }
}

/// Reads a body that is a vector of this layout.
///
/// # Errors
/// The request has no Content-Length, or the body has another length or a number that is not finite, breaks off or
/// times out.
pub(crate) async fn read_vector(body: Body, layout: &Layout) -> Result<Vec<f32>, Refusal> {
    let found = length(&body)?;
    let wanted = layout.dimension().saturating_mul(WIDTH);
    if found != wanted {
        return Err(Refusal::bad(format!(
            "{found} bytes were sent, and the vector of {} numbers has {wanted}",
            layout.dimension()
        ))
        .hint("send all tensors of the layout, one after the other, as little-endian f32"));
    }
    let mut vector = Vec::with_capacity(layout.dimension());
    let mut first_bad = None;
    // The first bytes of a number whose other bytes have not come yet.
    let mut begun: Vec<u8> = Vec::with_capacity(WIDTH);
    for_each_piece(body, READ_TIMEOUT, |piece| {
        let missing = if begun.is_empty() { 0 } else { WIDTH - begun.len() };
        let (head, rest) = piece.split_at(missing.min(piece.len()));
        begun.extend_from_slice(head);
        if begun.len() == WIDTH {
            push(&begun, &mut vector, &mut first_bad);
            begun.clear();
        }
        let whole = rest.len() - rest.len() % WIDTH;
        push(&rest[..whole], &mut vector, &mut first_bad);
        begun.extend_from_slice(&rest[whole..]);
    })
    .await?;
    match first_bad {
        None if vector.len() == layout.dimension() => Ok(vector),
        None => Err(Refusal::bad(format!("the body ended after {} of {wanted} bytes", vector.len() * WIDTH))),
        Some(index) => Err(Refusal::bad(format!(
            "number {index} of the vector is {}: {}",
            vector[index],
            place(layout, index)
        ))
        .hint("the training may have diverged: a smaller step or gradient clipping may help; `steps=0` sends nothing")),
    }
}

/// Appends whole numbers to `vector`, and records the index of the first that is not finite.
fn push(bytes: &[u8], vector: &mut Vec<f32>, first_bad: &mut Option<usize>) {
    let at = vector.len();
    let (numbers, _) = bytes.as_chunks::<WIDTH>();
    vector.extend(numbers.iter().map(|number| f32::from_le_bytes(*number)));
    if first_bad.is_none() {
        *first_bad = vector[at..].iter().position(|value| !value.is_finite()).map(|index| at + index);
    }
}

/// The tensor that the number at `index` belongs to and its index there, in words.
fn place(layout: &Layout, index: usize) -> String {
    let mut before = 0;
    for tensor in layout.tensors() {
        if index - before < tensor.len() {
            return format!("it is number {} of tensor `{}` {:?}", index - before, tensor.name, tensor.shape);
        }
        before += tensor.len();
    }
    "it is beyond the layout".to_owned()
}

/// Reads a body of at most `most` bytes.
///
/// # Errors
/// The request has no Content-Length, or the body is longer, breaks off or times out.
pub(crate) async fn read_bytes(body: Body, most: usize) -> Result<Vec<u8>, Refusal> {
    let length = length(&body)?;
    if length > most {
        let message = format!("{length} bytes were sent, and there is room for {most}");
        return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, ErrorKind::BadInput, message));
    }
    let mut bytes = Vec::with_capacity(length);
    for_each_piece(body, READ_TIMEOUT, |piece| bytes.extend_from_slice(piece)).await?;
    Ok(bytes)
}

/// The length of a body in bytes, from Content-Length.
fn length(body: &Body) -> Result<usize, Refusal> {
    let exact = body.size_hint().exact().and_then(|length| usize::try_from(length).ok());
    exact.ok_or_else(|| {
        Refusal::new(StatusCode::LENGTH_REQUIRED, ErrorKind::BadInput, "the request does not say how long its body is")
            .hint("send Content-Length, and no chunks")
    })
}

/// Passes each piece of a body to `take`; each must come within `timeout`.
async fn for_each_piece(mut body: Body, timeout: Duration, mut take: impl FnMut(&[u8])) -> Result<(), Refusal> {
    loop {
        let frame = tokio::time::timeout(timeout, body.frame()).await.map_err(|_| {
            let message = format!("nothing more of the body came for {} s", timeout.as_secs());
            Refusal::new(StatusCode::REQUEST_TIMEOUT, ErrorKind::TimedOut, message)
        })?;
        match frame {
            None => return Ok(()),
            Some(Err(error)) => return Err(Refusal::bad(format!("the body broke off: {error}"))),
            Some(Ok(frame)) => frame.data_ref().into_iter().for_each(|data| take(data)),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use futures::{StreamExt, stream};

    fn in_pieces(bytes: &[u8], piece: usize) -> Body {
        struct Known(Vec<Bytes>, u64);
        impl HttpBody for Known {
            type Data = Bytes;
            type Error = std::convert::Infallible;
            fn poll_frame(
                mut self: Pin<&mut Self>,
                _: &mut Context<'_>,
            ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
                Poll::Ready(self.0.pop().map(|bytes| Ok(Frame::data(bytes))))
            }
            fn size_hint(&self) -> SizeHint {
                SizeHint::with_exact(self.1)
            }
        }
        let mut pieces: Vec<Bytes> = bytes.chunks(piece).map(Bytes::copy_from_slice).collect();
        pieces.reverse();
        Body::new(Known(pieces, bytes.len() as u64))
    }

    #[tokio::test]
    async fn a_vector_comes_back_however_it_is_cut() {
        let layout = Layout::new([("a", vec![3]), ("b", vec![2, 2])]);
        let vector: Vec<f32> = (0..7).map(|index| index as f32 - 2.5).collect();
        let whole = Body::new(VectorBody::new(vector.clone().into())).collect().await.unwrap().to_bytes();
        for piece in 1..=whole.len() {
            assert_eq!(read_vector(in_pieces(&whole, piece), &layout).await.unwrap(), vector, "pieces of {piece}");
        }
        let long: Arc<[f32]> = (0..PIECE * 2 + 5).map(|index| index as f32).collect();
        let bytes = Body::new(VectorBody::new(long.clone())).collect().await.unwrap().to_bytes();
        assert_eq!(*read_vector(Body::from(bytes), &Layout::flat(long.len())).await.unwrap(), *long);
    }

    #[tokio::test]
    async fn a_wrong_vector_is_refused_and_says_what_is_wrong() {
        let layout = Layout::new([("a", vec![3]), ("b", vec![2])]);
        let says = async |body: Body| read_vector(body, &layout).await.unwrap_err().to_string();
        assert!(says(Body::from(vec![0; 16])).await.contains("16 bytes were sent, and the vector of 5 numbers has 20"));
        let bad: Vec<u8> = [0.0, 1.0, 2.0, 3.0, f32::NAN].iter().flat_map(|value: &f32| value.to_le_bytes()).collect();
        let said = says(in_pieces(&bad, 7)).await;
        assert!(said.contains("number 4 of the vector is NaN: it is number 1 of tensor `b` [2]"), "{said}");
        let endless = Body::from_stream(stream::repeat(()).take(9).map(|()| Ok::<_, std::io::Error>("0")));
        assert_eq!(read_bytes(endless, 100).await.unwrap_err().status(), 411);
        assert_eq!(read_bytes(Body::from(vec![0; 9]), 8).await.unwrap_err().status(), 413);
    }

    #[tokio::test]
    async fn a_body_that_never_ends_is_given_up() {
        let piece = stream::once(async { Ok::<_, std::io::Error>("begun") });
        let mut taken = Vec::new();
        let given_up =
            for_each_piece(Body::from_stream(piece.chain(stream::pending())), Duration::from_millis(1), |piece| {
                taken.extend_from_slice(piece);
            });
        let refusal = given_up.await.unwrap_err();
        assert_eq!((refusal.status(), taken.as_slice()), (408, &b"begun"[..]), "{refusal}");
        assert!(refusal.to_string().contains("nothing more of the body came"), "{refusal}");
    }

    #[tokio::test]
    async fn mutated_vectors_are_refused_or_finite() {
        let layout = Layout::new([("w", vec![2, 3]), ("b", Vec::new())]);
        let sound: Vec<u8> = (0..7).flat_map(|value| f32::from(value as u8).to_le_bytes()).collect();
        let handle = tokio::runtime::Handle::current();
        let seeds = [sound.clone(), [f32::NAN.to_le_bytes(); 7].concat(), sound];
        let trying = tokio::task::spawn_blocking(move || {
            mingle_mutations::for_each_input("trainer_vector", &seeds, |input| {
                for piece in [1, 3, 4, 64] {
                    if let Ok(vector) = handle.block_on(read_vector(in_pieces(input, piece), &layout)) {
                        assert!(vector.len() == 7 && vector.iter().all(|value| value.is_finite()));
                    }
                }
            });
        });
        trying.await.unwrap();
    }
}
