//! The manifest as TOML spells it: every key known, nothing checked yet.

use std::collections::BTreeMap;

use crate::perception::model::manifest::Role;

/// The whole file.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    pub(super) format: u32,
    #[serde(default, rename = "model")]
    pub(super) models: Vec<Model>,
}

/// One `[[model]]`.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Model {
    pub(super) id: String,
    pub(super) purpose: String,
    pub(super) licence: String,
    pub(super) default: bool,
    #[serde(default)]
    pub(super) local: bool,
    pub(super) home: String,
    pub(super) note: String,
    #[serde(default, rename = "file")]
    pub(super) files: Vec<File>,
}

/// One `[[model.file]]`.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) name: String,
    pub(super) role: Role,
    pub(super) bytes: Option<u64>,
    pub(super) sha256: Option<String>,
    #[serde(default)]
    pub(super) sources: Vec<String>,
    pub(super) built_from: Option<String>,
    #[serde(default)]
    pub(super) inputs: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) outputs: BTreeMap<String, String>,
}
