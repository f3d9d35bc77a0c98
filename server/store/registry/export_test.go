package registry

const ReleaseChunkSize = releaseChunkSize
