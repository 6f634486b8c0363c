//! The modality of an episode by the tool that produced it: the exact table of DESIGN 3.2.

use crate::domain::modality::Modality;

/// The modality of a tool's episode. Unknown names are `tool_result`; a tool's own category is
/// never asked, because some tools are miscategorised. A `multimodal_memory` episode that holds
/// more than a person takes its modality from its content instead (DESIGN 3.4).
#[must_use]
pub fn modality_of(tool_name: &str) -> Modality {
    match tool_name {
        "vision" | "camera_capture" | "image_read" | "screenshot" | "ocr" | "ocr_image_advanced" | "visual_memory"
        | "desktop_describe" => Modality::Visual,
        "audio_capture" | "audio_analyze" | "asr_listen" | "transcribe_file" | "transcribe_url" | "audio_playback" => {
            Modality::Audio
        }
        "multimodal_memory" | "send_message" | "jibberlink" => Modality::Social,
        "gps_location" | "bluetooth_scan" | "wifi_control" | "sdr_scan" => Modality::Spatial,
        "file_write" | "file_edit" | "file_patch" | "batch_edit" | "code_sandbox" | "repl_exec" => Modality::Code,
        "task_complete" => Modality::Gist,
        _ => Modality::ToolResult,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_of_the_table_has_its_modality() {
        let table: [(Modality, &[&str]); 6] = [
            (
                Modality::Visual,
                &[
                    "vision",
                    "camera_capture",
                    "image_read",
                    "screenshot",
                    "ocr",
                    "ocr_image_advanced",
                    "visual_memory",
                    "desktop_describe",
                ],
            ),
            (
                Modality::Audio,
                &[
                    "audio_capture",
                    "audio_analyze",
                    "asr_listen",
                    "transcribe_file",
                    "transcribe_url",
                    "audio_playback",
                ],
            ),
            (Modality::Social, &["multimodal_memory", "send_message", "jibberlink"]),
            (Modality::Spatial, &["gps_location", "bluetooth_scan", "wifi_control", "sdr_scan"]),
            (Modality::Code, &["file_write", "file_edit", "file_patch", "batch_edit", "code_sandbox", "repl_exec"]),
            (Modality::Gist, &["task_complete"]),
        ];

        assert_eq!(table.iter().map(|(_, names)| names.len()).sum::<usize>(), 28);
        for (modality, names) in table {
            for name in names {
                assert_eq!(modality_of(name), modality, "{name}");
            }
        }
    }

    #[test]
    fn an_unknown_tool_and_other_spellings_are_tool_results() {
        for name in ["", "Vision", "vision ", "weather", "OCR"] {
            assert_eq!(modality_of(name), Modality::ToolResult, "{name:?}");
        }
    }
}
