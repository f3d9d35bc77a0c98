package describe

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// addGeneric adds all fields of an object, as kubectl does for kinds that it does not know.
func (d *descriptionLines) addGeneric(o Object) error {
	var meta struct{ Metadata metadata }
	if err := json.Unmarshal(o.Manifest, &meta); err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(o.Manifest))
	decoder.UseNumber()
	var content map[string]any
	if err := decoder.Decode(&content); err != nil {
		return err
	}
	d.addf(0, "Name:\t%s", meta.Metadata.Name)
	d.addf(0, "Namespace:\t%s", meta.Metadata.Namespace)
	d.addMetadata(meta.Metadata)
	if all, ok := content["metadata"].(map[string]any); ok {
		for _, shown := range []string{"name", "namespace", "labels", "annotations", "managedFields"} {
			delete(all, shown)
		}
	}
	d.addContent(0, content)
	return nil
}

// addContent adds the members of an object, sorted by name.
func (d *descriptionLines) addContent(level int, content map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(content)) {
		switch value := content[name].(type) {
		case map[string]any:
			d.addf(level, "%s:", labelOf(name))
			d.addContent(level+1, value)
		case []any:
			d.addf(level, "%s:", labelOf(name))
			for _, item := range value {
				if object, ok := item.(map[string]any); ok {
					d.addContent(level+1, object)
				} else {
					d.addf(level+1, "%v", item)
				}
			}
		default:
			d.addf(level, "%s:\t%v", labelOf(name), value)
		}
	}
}

// labelOf returns the name of a field as words: "apiVersion" becomes "API Version". A name with other characters than letters
// stays as it is, because it is the key of a map.
func labelOf(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) && r != '-' }) {
		return name
	}
	words := splitWords(name)
	for i, word := range words {
		switch upper := strings.ToUpper(word); {
		case slices.Contains([]string{"API", "URL", "UID", "GUID"}, upper):
			words[i] = upper
		case strings.ToLower(word) == word:
			words[i] = capitalized(word)
		}
	}
	return strings.Join(words, " ")
}

func capitalized(word string) string {
	runes := []rune(word)
	runes[0] = unicode.ToUpper(runes[0])
	return string(runes)
}

// splitWords splits camel case: before each upper-case letter that follows another character or begins a word after an
// acronym. An acronym and the word after it stay together, as with kubectl.
func splitWords(name string) []string {
	var words []string
	runes := []rune(name)
	start := 0
	for i := 1; i < len(runes); i++ {
		beginsWord := unicode.IsUpper(runes[i]) && !unicode.IsUpper(runes[i-1])
		changesClass := (runes[i] == '-') != (runes[i-1] == '-')
		if beginsWord || changesClass {
			words = append(words, string(runes[start:i]))
			start = i
		}
	}
	return append(words, string(runes[start:]))
}
