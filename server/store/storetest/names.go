package storetest

// SimilarNames are names that some database, language or form of Unicode takes for the same.
func SimilarNames() []string {
	return []string{
		"pad", "pad ", "pad  ", " pad", "PAD", "Pad", "pad\t", "pad\u00a0", "pad\u200b", "pád", "pa\u0301d", "ｐａｄ", "paď", "pa\u017fd", "pasd",
		"straße", "strasse", "STRASSE", "ı", "i", "I", "İ", "\u212a", "k", "K", "æ", "ae", "\U00010400", "\U00010428", "pad%", "pad_",
		"pad\\", "pad'",
	}
}
