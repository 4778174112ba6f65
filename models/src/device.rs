//! Devices that hold tensors and compute on them, named by the user and opened once.
//!
//! burn 0.22 chooses the backend at run time. Its `Device::default()` depends on which features happen to be compiled
//! in, prefers a GPU and panics on a bad environment variable, so it is never called here. A [`DeviceName`] is parsed
//! and [opened](DeviceName::open), and the [`Device`] reports the adapter it uses.
//!
//! A GPU is reached through wgpu, which takes Vulkan where this machine has a driver for it and falls back to OpenGL
//! where it has none. burn does not report which of the two it is, so look at the adapter's name. burn can also pin
//! Vulkan, but then compiles its kernels to SPIR-V, on which Mesa 22.3's software rasterizer crashes. A driver that
//! computes on the processor (Mesa's llvmpipe) is accepted and marked in [`Adapter::software`].

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The name of a device, as written by the user.
///
/// | text | device |
/// | --- | --- |
/// | `cpu` | burn's flex backend, in every build |
/// | `ndarray` | burn's ndarray backend, an independent check of `cpu`; needs the feature `ndarray` |
/// | `wgpu` | the best adapter, through Vulkan where there is a driver; needs the feature `wgpu` |
/// | `wgpu:1` | the second adapter, counted from 0, best first |
///
/// ```
/// use mingle_models::DeviceName;
///
/// assert_eq!("wgpu:1".parse::<DeviceName>()?, DeviceName::Wgpu { index: Some(1) });
/// assert!("gpu".parse::<DeviceName>().is_err());
/// # Ok::<(), mingle_models::DeviceError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum DeviceName {
    /// burn's flex backend on the processor.
    #[default]
    Cpu,
    /// burn's ndarray backend on the processor.
    NdArray,
    /// An adapter through wgpu.
    Wgpu {
        /// The index of the adapter, counted from 0; the best one when absent.
        index: Option<usize>,
    },
}

impl DeviceName {
    /// Opens the device.
    ///
    /// # Errors
    ///
    /// [`DeviceError::NotBuilt`] when the backend was not compiled in, and
    /// [`DeviceError::NoAdapter`] or [`DeviceError::AdapterIndex`] when no such adapter exists.
    pub fn open(self) -> Result<Device, DeviceError> {
        match self {
            Self::Cpu => {
                Ok(Device { name: self, adapter: Adapter::processor("flex"), tensors: burn::tensor::Device::flex() })
            }
            Self::NdArray => open_ndarray(),
            Self::Wgpu { index } => open_wgpu(index),
        }
    }
}

/// An opened device. Clones share the hardware.
#[derive(Clone, Debug)]
pub struct Device {
    name: DeviceName,
    adapter: Adapter,
    tensors: burn::tensor::Device,
}

impl Device {
    /// The name under which it was opened.
    pub fn name(&self) -> DeviceName {
        self.name
    }

    /// The hardware that computes, and its interface.
    pub fn adapter(&self) -> &Adapter {
        &self.adapter
    }

    /// The device on which tensors are created without gradients.
    pub fn inference(&self) -> burn::tensor::Device {
        self.tensors.clone()
    }

    /// The device on which tensors are created with gradients.
    pub fn training(&self) -> burn::tensor::Device {
        self.tensors.clone().autodiff()
    }
}

/// The hardware behind a device; print it, so that no fallback stays unseen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Adapter {
    /// The adapter's own name, such as `NVIDIA RTX A4000` or `llvmpipe (LLVM 15.0.6, 256 bits)`.
    pub name: String,
    /// The interface it is driven through: `flex`, `ndarray` or `wgpu`.
    pub backend: String,
    /// `true` if it computes on the processor although its interface is a graphics card's.
    pub software: bool,
}

impl Adapter {
    fn processor(backend: &str) -> Self {
        Self { name: "processor".into(), backend: backend.into(), software: false }
    }
}

/// Errors of naming or opening a device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each variant names its fields")]
pub enum DeviceError {
    /// The text names no device.
    #[error("unknown device {0:?}: write cpu, ndarray, wgpu or wgpu:N")]
    Unknown(String),
    /// The backend was not compiled into this build.
    #[error("this build has no {device} device: cargo build --features {feature}")]
    NotBuilt { device: DeviceName, feature: &'static str },
    /// The interface has no adapter.
    #[error("no {interface} adapter for device {device}: install a {interface} driver or use cpu")]
    NoAdapter { device: DeviceName, interface: &'static str },
    /// The index is past the last adapter.
    #[error("no adapter {index} for device wgpu: the adapters are {}", list(names))]
    AdapterIndex {
        /// The index asked for.
        index: usize,
        /// The names of the adapters, by index.
        names: Vec<String>,
    },
}

fn list(names: &[String]) -> String {
    let numbered: Vec<String> = names.iter().enumerate().map(|(index, name)| format!("{index} = {name}")).collect();
    numbered.join(", ")
}

#[cfg(feature = "ndarray")]
fn open_ndarray() -> Result<Device, DeviceError> {
    // Deprecated upstream in favour of flex; kept exactly because it shares no kernel with it.
    #[allow(deprecated)]
    let tensors = burn::tensor::Device::ndarray();
    Ok(Device { name: DeviceName::NdArray, adapter: Adapter::processor("ndarray"), tensors })
}

#[cfg(not(feature = "ndarray"))]
fn open_ndarray() -> Result<Device, DeviceError> {
    Err(DeviceError::NotBuilt { device: DeviceName::NdArray, feature: "ndarray" })
}

#[cfg(feature = "wgpu")]
fn open_wgpu(index: Option<usize>) -> Result<Device, DeviceError> {
    use burn::tensor::DeviceType;

    const INTERFACE: &str = "wgpu";
    let name = DeviceName::Wgpu { index };
    // Listed by kind: discrete, integrated, virtual, software. The first is the best.
    let adapters: Vec<burn::tensor::Device> = burn::tensor::Device::enumerate(DeviceType::Wgpu).into_iter().collect();
    if adapters.is_empty() {
        return Err(DeviceError::NoAdapter { device: name, interface: INTERFACE });
    }
    let wanted = index.unwrap_or(0);
    let Some(tensors) = adapters.get(wanted).cloned() else {
        let names = adapters.iter().map(|adapter| describe(adapter, INTERFACE).name).collect();
        return Err(DeviceError::AdapterIndex { index: wanted, names });
    };
    let adapter = describe(&tensors, INTERFACE);
    Ok(Device { name, adapter, tensors })
}

#[cfg(feature = "wgpu")]
fn describe(device: &burn::tensor::Device, interface: &str) -> Adapter {
    // A device without the identity of a physical card is a software rasterizer.
    match device.identity() {
        Some(identity) => {
            Adapter { name: identity.name, backend: interface.into(), software: identity.physical.is_none() }
        }
        None => Adapter { name: "unnamed adapter".into(), backend: interface.into(), software: true },
    }
}

#[cfg(not(feature = "wgpu"))]
fn open_wgpu(index: Option<usize>) -> Result<Device, DeviceError> {
    Err(DeviceError::NotBuilt { device: DeviceName::Wgpu { index }, feature: "wgpu" })
}

impl FromStr for DeviceName {
    type Err = DeviceError;

    fn from_str(text: &str) -> Result<Self, DeviceError> {
        let unknown = || DeviceError::Unknown(text.to_owned());
        match text {
            "cpu" => Ok(Self::Cpu),
            "ndarray" => Ok(Self::NdArray),
            "wgpu" => Ok(Self::Wgpu { index: None }),
            _ => {
                let index = text.strip_prefix("wgpu:").ok_or_else(unknown)?;
                Ok(Self::Wgpu { index: Some(index.parse().map_err(|_| unknown())?) })
            }
        }
    }
}

mingle_datasets::text_form!(DeviceName, DeviceError);

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::NdArray => f.write_str("ndarray"),
            Self::Wgpu { index: None } => f.write_str("wgpu"),
            Self::Wgpu { index: Some(index) } => write!(f, "wgpu:{index}"),
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.adapter)
    }
}

impl fmt::Display for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.name, self.backend)?;
        if self.software { f.write_str(", in software") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn every_device_name_reads_back_as_it_prints() {
        for text in ["cpu", "ndarray", "wgpu", "wgpu:0", "wgpu:17"] {
            assert_eq!(text.parse::<DeviceName>().unwrap().to_string(), text);
        }
        for text in ["", "CPU", "gpu", "wgpu:", "wgpu:-1", "wgpu:one", "cpu:0"] {
            assert_eq!(text.parse::<DeviceName>(), Err(DeviceError::Unknown(text.into())), "{text}");
        }
    }

    #[test]
    fn the_default_device_opens_in_every_build_and_names_its_backend() {
        let device = DeviceName::default().open().unwrap();
        assert_eq!(device.to_string(), "cpu (processor, flex)");
    }

    #[cfg(not(feature = "ndarray"))]
    #[test]
    fn a_device_missing_from_the_build_says_how_to_build_it() {
        let error = DeviceName::NdArray.open().unwrap_err();
        assert_eq!(error.to_string(), "this build has no ndarray device: cargo build --features ndarray");
    }

    #[cfg(not(feature = "wgpu"))]
    #[test]
    fn a_gpu_missing_from_the_build_says_how_to_build_it() {
        let error = "wgpu:1".parse::<DeviceName>().unwrap().open().unwrap_err();
        assert_eq!(error.to_string(), "this build has no wgpu:1 device: cargo build --features wgpu");
    }
}
