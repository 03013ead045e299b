package workspace

// SettingsDir returns the canonical path of the program's own directory, which a
// walk of the workspace does not enter, or "" when there is none.
func (w *Workspace) SettingsDir() string { return w.options.SettingsDir }
