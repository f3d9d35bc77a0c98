-- +goose Up
-- A smallint was used up by 32,767 kinds, of which one agent could declare as many.
-- Each statement commits by itself, and may be done again.
ALTER TABLE kinds MODIFY id INT NOT NULL AUTO_INCREMENT;
ALTER TABLE feeds MODIFY kind_id INT NOT NULL;
ALTER TABLE objects MODIFY kind_id INT NOT NULL;
ALTER TABLE dictionaries MODIFY kind_id INT NOT NULL;

-- The agent that declared a kind first, and since when no feed has been of it; 0
-- while one is, or it is not known yet that none is. MySQL has no ADD COLUMN IF NOT
-- EXISTS.
SET @change = IF((SELECT COUNT(*) FROM information_schema.columns
		WHERE table_schema = DATABASE() AND table_name = 'kinds' AND column_name = 'unused') = 0,
	'ALTER TABLE kinds ADD COLUMN agent VARCHAR(255) NOT NULL DEFAULT '''', ADD COLUMN unused BIGINT NOT NULL DEFAULT 0', 'DO 0');
PREPARE adding FROM @change;
EXECUTE adding;
DEALLOCATE PREPARE adding;
