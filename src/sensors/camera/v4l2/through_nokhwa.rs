//! A stream read through nokhwa.
//!
//! Its `frame_raw` waits for as long as the driver likes: it is called on a reader thread that may be left behind.
//! After an error the stream is started anew, because the buffer that was being waited for is lost to it.

use crate::sensors::camera::edge::Frames;
use crate::sensors::camera::edge::Shot;
use crate::sensors::camera::negotiate::system_error;
use crate::sensors::camera::pixels::Agreed;
use nokhwa::Camera;
use nokhwa::utils::ApiBackend;
use nokhwa::utils::CameraFormat;
use nokhwa::utils::CameraIndex;
use nokhwa::utils::FrameFormat;
use nokhwa::utils::RequestedFormat;
use nokhwa::utils::RequestedFormatType;
use nokhwa::utils::Resolution;
use std::io;

struct NokhwaFrames {
    camera: Camera,
    agreed: Agreed,
    is_spoilt: bool,
}

/// Opens node `index` with exactly what it already agreed to.
pub(super) fn open(index: u32, agreed: Agreed, format: FrameFormat, rate: u32) -> io::Result<Box<dyn Frames>> {
    let exact = CameraFormat::new(Resolution::new(agreed.size_px.0, agreed.size_px.1), format, rate);
    let formats = [format];
    let request = RequestedFormat::with_formats(RequestedFormatType::Exact(exact), &formats);
    let camera = Camera::with_backend(CameraIndex::Index(index), request, ApiBackend::Video4Linux);
    let mut camera = camera.map_err(|error| system_error(&error))?;
    camera.open_stream().map_err(|error| system_error(&error))?;
    Ok(Box::new(NokhwaFrames { camera, agreed, is_spoilt: false }))
}

impl NokhwaFrames {
    fn restart(&mut self) -> io::Result<()> {
        self.camera.stop_stream().map_err(|error| system_error(&error))?;
        self.camera.open_stream().map_err(|error| system_error(&error))
    }
}

impl Frames for NokhwaFrames {
    fn agreed(&self) -> Agreed {
        self.agreed
    }

    fn next(&mut self) -> io::Result<Option<Shot<'_>>> {
        if self.is_spoilt {
            self.restart()?;
            self.is_spoilt = false;
        }
        match self.camera.frame_raw() {
            Ok(bytes) => Ok(Some(Shot { bytes, is_damaged: false })),
            Err(error) => {
                self.is_spoilt = true;
                Err(system_error(&error))
            }
        }
    }
}
