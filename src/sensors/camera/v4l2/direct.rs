//! A stream read with `v4l`, for what nokhwa refuses. Never waits longer than [`WAIT_MS`].

use crate::sensors::camera::edge::Frames;
use crate::sensors::camera::edge::Shot;
use crate::sensors::camera::pixels::Agreed;
use std::borrow::Cow;
use std::io;
use std::time::Duration;
use v4l::Device;
use v4l::buffer::Flags;
use v4l::buffer::Type;
use v4l::io::traits::CaptureStream;
use v4l::io::traits::Stream;
use v4l::prelude::MmapStream;

/// Longest wait for a frame, in milliseconds.
const WAIT_MS: i32 = 250;

/// Buffers asked for: one that is read, and some that are filled meanwhile.
const BUFFERS: u32 = 4;

/// `POLLIN`: a frame is there to be read.
const POLLIN: i16 = 0x001;

/// Longest wait for a frame that was said to be there.
const TAKE_WAIT: Duration = Duration::from_secs(5);

struct DirectFrames {
    // Before the device: the stream lets go of its buffers first.
    stream: Option<MmapStream<'static>>,
    device: Device,
    agreed: Agreed,
    is_spoilt: bool,
}

/// Starts the stream of a device that has its format set.
pub(super) fn open(device: Device, agreed: Agreed) -> io::Result<Box<dyn Frames>> {
    let stream = Some(start(&device)?);
    Ok(Box::new(DirectFrames { stream, device, agreed, is_spoilt: false }))
}

/// Hands all buffers but the first to the driver and starts; the first is handed over by the first reading.
fn start(device: &Device) -> io::Result<MmapStream<'static>> {
    let mut stream = MmapStream::with_buffers(device, Type::VideoCapture, BUFFERS)?;
    stream.set_timeout(TAKE_WAIT);
    for index in 1..BUFFERS as usize {
        // A driver may have fewer buffers to give than were asked for.
        if let Err(error) = stream.queue(index) {
            tracing::debug!(index, "the camera's driver takes no such buffer: {error}");
        }
    }
    stream.start()?;
    Ok(stream)
}

impl Frames for DirectFrames {
    fn agreed(&self) -> Agreed {
        self.agreed
    }

    fn next(&mut self) -> io::Result<Option<Shot<'_>>> {
        if self.is_spoilt {
            // The buffer that was waited for is lost to the stream: it begins anew, the old one let go first.
            self.stream = None;
            self.is_spoilt = false;
        }
        let stream = match &mut self.stream {
            Some(stream) => stream,
            empty => empty.insert(start(&self.device)?),
        };
        if self.device.handle().poll(POLLIN, WAIT_MS)? == 0 {
            return Ok(None);
        }
        match stream.next() {
            Ok((bytes, meta)) => {
                let used = usize::try_from(meta.bytesused).unwrap_or(bytes.len()).min(bytes.len());
                let is_damaged = meta.flags.contains(Flags::ERROR);
                Ok(Some(Shot { bytes: Cow::Borrowed(&bytes[..used]), is_damaged }))
            }
            Err(error) => {
                self.is_spoilt = true;
                Err(error)
            }
        }
    }
}
